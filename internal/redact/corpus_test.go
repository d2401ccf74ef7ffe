package redact

import (
	"math/rand/v2"
	"testing"
)

func newRedactor(t testing.TB) *Redactor {
	t.Helper()
	r, err := New([]byte("a key that only the tests know...."))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// alphabets of generated secrets.
var alphabets = map[string]string{
	"alnum": alnums, "hex": "0123456789abcdef", "upper": uppers + digits, "lower": lowers + digits, "dash": alnums + "-_", "base64": alnums + "+/", "digits": digits,
}

// random answers n characters of an alphabet that depend on seed alone. The first three are a small letter, a digit and a
// capital where the alphabet has them, so that no two runs of luck decide a test.
func random(alphabet string, n, seed int) string {
	chars := alphabets[alphabet]
	rng := rand.New(rand.NewPCG(uint64(seed), uint64(n)))
	out := make([]byte, n)
	for i := range out {
		out[i] = chars[rng.IntN(len(chars))]
	}
	if alphabet != "hex" && alphabet != "upper" && alphabet != "digits" && n > 3 {
		out[1], out[2] = 'k', '7'
		if alphabet != "lower" {
			out[3] = 'Q'
		}
	}
	return string(out)
}
