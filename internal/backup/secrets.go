package backup

import "unicode/utf8"

const (
	shortest = 8       // bytes of a text that can hold a secret
	longest  = 4 << 10 // bytes looked at together
)

// counter counts the secrets in what is written to it: in lines of text, and in
// the texts within a database's pages.
type counter struct {
	find  func(string) int
	text  []byte
	count int
}

// Write implements io.Writer; it takes everything.
func (c *counter) Write(p []byte) (int, error) {
	for _, b := range p {
		if b < ' ' && b != '\t' || b == 0x7f || len(c.text) >= longest && (b == ' ' || b == '"' || len(c.text) >= 2*longest) {
			c.flush()
			continue
		}
		c.text = append(c.text, b)
	}
	return len(p), nil
}

// flush looks at what has come since the last break.
func (c *counter) flush() {
	if len(c.text) >= shortest && utf8.Valid(c.text) {
		c.count += c.find(string(c.text))
	}
	c.text = c.text[:0]
}
