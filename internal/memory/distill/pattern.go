package distill

import (
	"regexp"
	"sync"
)

// pattern is a regular expression that is compiled when it is first used: a
// process that distils nothing does not pay for a hundred of them.
type pattern struct {
	compile func() *regexp.Regexp
}

// match returns the pattern of an expression, which must be valid; a test
// compiles all of them.
func match(expression string) *pattern {
	return &pattern{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })}
}

// The methods are those of regexp.Regexp.

func (p *pattern) MatchString(s string) bool            { return p.compile().MatchString(s) }
func (p *pattern) FindStringIndex(s string) []int       { return p.compile().FindStringIndex(s) }
func (p *pattern) FindStringSubmatch(s string) []string { return p.compile().FindStringSubmatch(s) }
func (p *pattern) FindStringSubmatchIndex(s string) []int {
	return p.compile().FindStringSubmatchIndex(s)
}
func (p *pattern) FindAllString(s string, n int) []string { return p.compile().FindAllString(s, n) }
func (p *pattern) FindAllStringIndex(s string, n int) [][]int {
	return p.compile().FindAllStringIndex(s, n)
}
func (p *pattern) FindAllStringSubmatch(s string, n int) [][]string {
	return p.compile().FindAllStringSubmatch(s, n)
}
func (p *pattern) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return p.compile().FindAllStringSubmatchIndex(s, n)
}
func (p *pattern) ReplaceAllString(s, with string) string {
	return p.compile().ReplaceAllString(s, with)
}
func (p *pattern) Split(s string, n int) []string { return p.compile().Split(s, n) }
