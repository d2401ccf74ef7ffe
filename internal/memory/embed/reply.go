package embed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strings"

	"github.com/openclawssy/openclawssy/internal/llm"
)

// What can be wrong with vectors that arrived, as the class of an
// *llm.ReplyError.
const (
	WrongCount     llm.ReplyClass = "wrong_count"     // fewer or more vectors than texts
	WrongIndex     llm.ReplyClass = "wrong_index"     // two vectors of one text, or of none
	WrongDimension llm.ReplyClass = "wrong_dimension" // not as long as the others, or as this model's
	EmptyVector    llm.ReplyClass = "empty_vector"    // no numbers, or only zeros
	NotFinite      llm.ReplyClass = "not_finite"      // NaN, infinite, or no number at all
)

// maxDimensions bounds the answer where the length of vectors is not known; no
// model in use has more.
const maxDimensions = 8192

// How many bytes of JSON a number of a vector takes, and the rest of an answer.
const (
	bytesPerNumber = 32
	bytesFixed     = 64 << 10
)

// reply is what came of one request.
type reply struct {
	texts int   // that were sent
	dims  int64 // of a vector, as far as known

	raw     bytes.Buffer // of the body
	entries []entry
	tokens  int // as the endpoint counts them
	indexed bool
	vectors [][]float32 // in the order of the texts, once judged
}

// entry is a vector as it came, for the text with that index.
type entry struct {
	index   int
	numbers []float32
}

// mostBytes is how large the answer may be.
func (r *reply) mostBytes() int64 {
	dims := r.dims
	if dims == 0 {
		dims = maxDimensions
	}
	return int64(r.texts+1)*dims*bytesPerNumber + bytesFixed
}

// noNumber finds an element of an array that is not finite, which decoding into
// numbers either refuses without saying why or takes for 0.
var noNumber = regexp.MustCompile(`(?i)[\[,]\s*(null|[-+]?nan|[-+]?inf(inity)?)\s*[,\]]`)

// decoded types an error of decoding the answer.
func (r *reply) decoded(err error) error {
	var kind *json.UnmarshalTypeError
	tooLarge := errors.As(err, &kind) && kind.Type.Kind() == reflect.Float32 && strings.HasPrefix(kind.Value, "number")
	if tooLarge || noNumber.Match(r.raw.Bytes()) {
		return &llm.ReplyError{Class: NotFinite, What: "a vector has numbers in it that are none"}
	}
	return err
}

// judge orders the vectors by their texts and checks them.
func (r *reply) judge() error {
	if len(r.entries) != r.texts {
		return &llm.ReplyError{Class: WrongCount, What: fmt.Sprintf("it has %d vectors for %d texts", len(r.entries), r.texts)}
	}
	ordered := make([][]float32, r.texts)
	for at, e := range r.entries {
		if r.indexed {
			at = e.index
		}
		if at < 0 || at >= r.texts || ordered[at] != nil {
			return &llm.ReplyError{Class: WrongIndex, What: fmt.Sprintf("it gives vectors the wrong texts (index %d)", at)}
		}
		if len(e.numbers) == 0 {
			return &llm.ReplyError{Class: EmptyVector, What: "a vector is empty"}
		}
		ordered[at] = e.numbers
	}
	want := int(r.dims)
	if want == 0 {
		want = len(ordered[0])
	}
	for _, v := range ordered {
		if len(v) != want {
			return &llm.ReplyError{Class: WrongDimension, What: fmt.Sprintf("a vector has %d numbers where the model has %d", len(v), want)}
		}
		var sum float64
		for _, x := range v {
			sum += float64(x) * float64(x)
		}
		switch {
		case math.IsNaN(sum) || math.IsInf(sum, 0):
			return &llm.ReplyError{Class: NotFinite, What: "a vector has numbers in it that are none"}
		case sum == 0:
			return &llm.ReplyError{Class: EmptyVector, What: "a vector has only zeros"}
		}
	}
	r.vectors = ordered
	return nil
}

// markIndexed decides whether the entries' indexes count. Some servers leave
// them out, which reads as all 0; then the order is that of the texts.
func (r *reply) markIndexed() {
	for _, e := range r.entries {
		if e.index != 0 {
			r.indexed = true
		}
	}
}

// usage is what the request took: nothing where it was not taken.
func (r *reply) usage(w *llm.Wire, estimated int) llm.Usage {
	switch {
	case !w.Sent():
		return llm.Usage{}
	case !w.Answered():
		return llm.Usage{Calls: 1}
	case r.tokens > 0:
		// No text takes more tokens than it has bytes, whatever the endpoint counts.
		return llm.Usage{Calls: 1, TokensIn: min(r.tokens, estimated*bytesPerToken)}
	}
	return llm.Usage{Calls: 1, TokensIn: estimated, Estimated: true}
}
