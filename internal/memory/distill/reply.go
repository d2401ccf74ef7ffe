package distill

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Reply is a distiller's answer. Its JSON form writes every key; optional ones
// that are not set are null.
type Reply struct {
	NewItems []NewItem `json:"new_items"`
	Updates  []Update  `json:"updates"`
}

// NewItem is one item to be added. An item that says again what an offered item
// or an earlier entry says carries the same title and content as that one: the
// store then keeps one item with the evidence of both.
type NewItem struct {
	Kind       string  `json:"kind"`
	Title      string  `json:"title"`
	Content    string  `json:"content"`
	Importance int     `json:"importance"` // 1 to 5
	Confidence float64 `json:"confidence"` // 0 to 1
	Evidence   []Quote `json:"evidence"`
	// ValidFrom and ValidTo bound when the content holds in the world: an RFC 3339
	// date or time, nil for open.
	ValidFrom *string `json:"valid_from"`
	ValidTo   *string `json:"valid_to"`
	// Supersedes is the id of an offered item that this one replaces, or "new:n"
	// for entry n (from 0) of the same reply's new_items; nil for none.
	Supersedes *string `json:"supersedes"`
}

// Update is a new version of an offered item. The old version is kept and marked
// superseded.
type Update struct {
	ID         string  `json:"id"`
	NewTitle   *string `json:"new_title"` // nil keeps the old title
	NewContent string  `json:"new_content"`
	Confidence float64 `json:"confidence"`
	Evidence   []Quote `json:"evidence"`
}

// Quote ties an entry to a span of an event's text.
type Quote struct {
	EventID string `json:"event_id"`
	Quote   string `json:"quote"`
}

// MarshalJSON writes lists as [], never as null.
func (r Reply) MarshalJSON() ([]byte, error) {
	type plain Reply
	p := plain(r)
	if p.NewItems == nil {
		p.NewItems = []NewItem{}
	}
	if p.Updates == nil {
		p.Updates = []Update{}
	}
	return json.Marshal(p)
}

// Limits bound a reply.
type Limits struct {
	Bytes    int // of the whole reply
	Entries  int // in new_items, and in updates
	Evidence int // quotes of one entry
}

// DefaultLimits bound a reply to a batch of ordinary size.
var DefaultLimits = Limits{Bytes: 1 << 20, Entries: 2000, Evidence: 64}

// StructureError says why a reply as a whole was not accepted. Nothing of such a
// reply is used.
type StructureError struct {
	Path   string // such as new_items[2].kind; "" for the reply itself
	Reason string
}

func (e *StructureError) Error() string {
	if e.Path == "" {
		return "reply " + e.Reason
	}
	return "reply: " + e.Path + " " + e.Reason
}

// Unwrap makes every StructureError an ErrInvalid.
func (e *StructureError) Unwrap() error { return memory.ErrInvalid }

// Parse reads a reply strictly: one JSON object and nothing around it, valid
// UTF-8, keys spelled exactly, none unknown, none twice, none missing that is
// required, values of the right type, within limits. Values are not judged here:
// an entry with an importance of 9 parses, and Gate refuses it alone. Parse takes
// time linear in the length of raw. Its errors are *StructureError.
func Parse(raw []byte, limits Limits) (Reply, error) {
	switch {
	case len(raw) > limits.Bytes:
		return Reply{}, &StructureError{Reason: fmt.Sprintf("is longer than %d bytes", limits.Bytes)}
	case !utf8.Valid(raw):
		return Reply{}, &StructureError{Reason: "is not valid UTF-8"}
	case !json.Valid(raw):
		return Reply{}, &StructureError{Reason: "is not exactly one JSON value"}
	}
	p := &parser{dec: json.NewDecoder(bytes.NewReader(raw)), limits: limits}
	p.dec.UseNumber()
	var r Reply
	if err := p.reply(&r); err != nil {
		return Reply{}, err
	}
	return r, nil
}

// parser walks the tokens of a reply that is known to be valid JSON.
type parser struct {
	dec    *json.Decoder
	limits Limits
}

// member reads the value of one key.
type member struct {
	required bool
	read     func(path string) error
}

func (p *parser) reply(r *Reply) error {
	return p.object("", map[string]member{
		"new_items": {true, func(path string) error {
			return p.list(path, p.limits.Entries, func(at string) error {
				var n NewItem
				err := p.newItem(at, &n)
				r.NewItems = append(r.NewItems, n)
				return err
			})
		}},
		"updates": {true, func(path string) error {
			return p.list(path, p.limits.Entries, func(at string) error {
				var u Update
				err := p.update(at, &u)
				r.Updates = append(r.Updates, u)
				return err
			})
		}},
	})
}

func (p *parser) newItem(path string, n *NewItem) error {
	return p.object(path, map[string]member{
		"kind":       {true, p.text(&n.Kind)},
		"title":      {true, p.text(&n.Title)},
		"content":    {true, p.text(&n.Content)},
		"importance": {true, p.integer(&n.Importance)},
		"confidence": {true, p.number(&n.Confidence)},
		"evidence":   {true, p.evidence(&n.Evidence)},
		"valid_from": {false, p.textOrNull(&n.ValidFrom)},
		"valid_to":   {false, p.textOrNull(&n.ValidTo)},
		"supersedes": {false, p.textOrNull(&n.Supersedes)},
	})
}

func (p *parser) update(path string, u *Update) error {
	return p.object(path, map[string]member{
		"id":          {true, p.text(&u.ID)},
		"new_title":   {false, p.textOrNull(&u.NewTitle)},
		"new_content": {true, p.text(&u.NewContent)},
		"confidence":  {true, p.number(&u.Confidence)},
		"evidence":    {true, p.evidence(&u.Evidence)},
	})
}

func (p *parser) evidence(to *[]Quote) func(string) error {
	return func(path string) error {
		*to = []Quote{}
		return p.list(path, p.limits.Evidence, func(at string) error {
			var q Quote
			err := p.object(at, map[string]member{
				"event_id": {true, p.text(&q.EventID)},
				"quote":    {true, p.text(&q.Quote)},
			})
			*to = append(*to, q)
			return err
		})
	}
}

// object reads one object whose members are exactly those given.
func (p *parser) object(path string, members map[string]member) error {
	if err := p.delim(path, '{', "must be an object"); err != nil {
		return err
	}
	seen := make(map[string]bool, len(members))
	for p.dec.More() {
		token, err := p.dec.Token()
		if err != nil {
			return &StructureError{Path: path, Reason: err.Error()}
		}
		key, isString := token.(string)
		at := strings.TrimPrefix(path+"."+key, ".")
		m, known := members[key]
		switch {
		case !isString || !known:
			return &StructureError{Path: path, Reason: "has the unknown key " + strconv.Quote(clip(key, 40))}
		case seen[key]:
			return &StructureError{Path: at, Reason: "is there twice"}
		}
		seen[key] = true
		if err := m.read(at); err != nil {
			return err
		}
	}
	missing := ""
	for key, m := range members {
		if m.required && !seen[key] && (missing == "" || key < missing) {
			missing = key
		}
	}
	if missing != "" {
		return &StructureError{Path: strings.TrimPrefix(path+"."+missing, "."), Reason: "is missing"}
	}
	return p.delim(path, '}', "must be an object")
}

// list reads an array of at most most elements.
func (p *parser) list(path string, most int, element func(path string) error) error {
	if err := p.delim(path, '[', "must be an array"); err != nil {
		return err
	}
	for n := 0; p.dec.More(); n++ {
		if n == most {
			return &StructureError{Path: path, Reason: fmt.Sprintf("has more than %d elements", most)}
		}
		if err := element(path + "[" + strconv.Itoa(n) + "]"); err != nil {
			return err
		}
	}
	return p.delim(path, ']', "must be an array")
}

func (p *parser) delim(path string, want json.Delim, reason string) error {
	token, err := p.dec.Token()
	if err != nil || token != want {
		return &StructureError{Path: path, Reason: reason}
	}
	return nil
}

func (p *parser) text(to *string) func(string) error {
	return func(path string) error {
		token, err := p.dec.Token()
		s, isString := token.(string)
		if err != nil || !isString {
			return &StructureError{Path: path, Reason: "must be a string"}
		}
		*to = s
		return nil
	}
}

func (p *parser) textOrNull(to **string) func(string) error {
	return func(path string) error {
		token, err := p.dec.Token()
		s, isString := token.(string)
		if err != nil || (!isString && token != nil) {
			return &StructureError{Path: path, Reason: "must be a string or null"}
		}
		if isString {
			*to = &s
		}
		return nil
	}
}

func (p *parser) integer(to *int) func(string) error {
	return func(path string) error {
		token, err := p.dec.Token()
		number, isNumber := token.(json.Number)
		if err != nil || !isNumber {
			return &StructureError{Path: path, Reason: "must be an integer"}
		}
		n, err := strconv.ParseInt(number.String(), 10, 32)
		if err != nil {
			return &StructureError{Path: path, Reason: "must be an integer"}
		}
		*to = int(n)
		return nil
	}
}

func (p *parser) number(to *float64) func(string) error {
	return func(path string) error {
		token, err := p.dec.Token()
		number, isNumber := token.(json.Number)
		if err != nil || !isNumber {
			return &StructureError{Path: path, Reason: "must be a number"}
		}
		f, err := number.Float64()
		if err != nil {
			return &StructureError{Path: path, Reason: "must be a finite number"}
		}
		*to = f
		return nil
	}
}

// clip cuts s after at most n runes.
func clip(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i] + "…"
		}
		n--
	}
	return s
}
