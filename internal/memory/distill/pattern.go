package distill

import (
	"regexp"
	"sync"
)

// pattern is a regular expression that is compiled when it is first needed: a
// process that distils nothing does not pay for a hundred of them, and one that
// does not for those that its texts do not come near.
type pattern struct {
	sieve   func() sieve
	compile func() *regexp.Regexp
}

// match returns the pattern of an expression, which must be valid; a test
// compiles all of them.
func match(expression string) *pattern {
	return &pattern{
		sync.OnceValue(func() sieve { return newSieve(expression) }),
		sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) }),
	}
}

// isIn is MatchString for a text of which many patterns are asked: its grams are
// found once.
func (p *pattern) isIn(s string, known *grams) bool {
	return p.sieve().passes(s, known) && p.compile().MatchString(s)
}

// The others are those of regexp.Regexp.

func (p *pattern) MatchString(s string) bool {
	return p.sieve().passes(s, nil) && p.compile().MatchString(s)
}

func (p *pattern) FindStringIndex(s string) []int {
	if !p.sieve().passes(s, nil) {
		return nil
	}
	return p.compile().FindStringIndex(s)
}

func (p *pattern) FindStringSubmatch(s string) []string {
	if !p.sieve().passes(s, nil) {
		return nil
	}
	return p.compile().FindStringSubmatch(s)
}

func (p *pattern) FindStringSubmatchIndex(s string) []int {
	if !p.sieve().passes(s, nil) {
		return nil
	}
	return p.compile().FindStringSubmatchIndex(s)
}

func (p *pattern) FindAllString(s string, n int) []string {
	if !p.sieve().passes(s, nil) {
		return nil
	}
	return p.compile().FindAllString(s, n)
}

func (p *pattern) FindAllStringIndex(s string, n int) [][]int {
	if !p.sieve().passes(s, nil) {
		return nil
	}
	return p.compile().FindAllStringIndex(s, n)
}

func (p *pattern) FindAllStringSubmatch(s string, n int) [][]string {
	if !p.sieve().passes(s, nil) {
		return nil
	}
	return p.compile().FindAllStringSubmatch(s, n)
}

func (p *pattern) FindAllStringSubmatchIndex(s string, n int) [][]int {
	if !p.sieve().passes(s, nil) {
		return nil
	}
	return p.compile().FindAllStringSubmatchIndex(s, n)
}

func (p *pattern) ReplaceAllString(s, with string) string {
	if !p.sieve().passes(s, nil) {
		return s
	}
	return p.compile().ReplaceAllString(s, with)
}

func (p *pattern) Split(s string, n int) []string { return p.compile().Split(s, n) }
