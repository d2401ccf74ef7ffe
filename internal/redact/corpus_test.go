package redact

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
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
var alphabets = map[string]string{"alnum": alnums, "hex": "0123456789abcdef", "upper": uppers + digits, "digits": digits}

// random answers n characters of an alphabet that depend on seed alone. Short ones of letters begin with a small letter, a
// digit and a capital, so that no run of luck makes a word of them.
func random(alphabet string, n, seed int) string {
	chars := alphabets[alphabet]
	rng := rand.New(rand.NewPCG(uint64(seed), uint64(n)))
	out := make([]byte, n)
	for i := range out {
		out[i] = chars[rng.IntN(len(chars))]
	}
	if alphabet == "alnum" && n > 3 {
		out[1], out[2], out[3] = 'k', '7', 'Q'
	}
	return string(out)
}

// readLines answers the lines of a file in testdata, ⏎ standing for a line break.
func readLines(t testing.TB, name string) []string {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var lines []string
	scanner := bufio.NewScanner(f)
	for scanner.Scan() {
		lines = append(lines, strings.ReplaceAll(scanner.Text(), "⏎", "\n"))
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

// hole is the place of a secret in a line of testdata/secrets.txt: ⟦alphabet:length⟧, made up at run time, or ⟦=text⟧.
var hole = regexp.MustCompile(`⟦(=[^⟧]*|[a-z]+:[0-9]+)⟧`)

// fill answers a line with its holes filled, and the secrets in them.
func fill(t testing.TB, line string, seed int) (text string, secrets []string) {
	text = hole.ReplaceAllStringFunc(line, func(m string) string {
		inner := strings.TrimSuffix(strings.TrimPrefix(m, "⟦"), "⟧")
		secret, literal := strings.CutPrefix(inner, "=")
		if !literal {
			alphabet, length, _ := strings.Cut(inner, ":")
			n, err := strconv.Atoi(length)
			if err != nil {
				t.Fatalf("hole %q: %v", m, err)
			}
			seed++
			secret = random(alphabet, n, seed)
		}
		secrets = append(secrets, secret)
		return secret
	})
	return text, secrets
}

// leaks tells whether a secret, or eight characters of it in a row, stands in out.
func leaks(secret, out string) bool {
	if len(secret) <= 8 {
		return strings.Contains(out, secret)
	}
	for i := 0; i+8 <= len(secret); i++ {
		if strings.Contains(out, secret[i:i+8]) {
			return true
		}
	}
	return false
}

// tokenWithHole is a hole with the prefix and the other parts of the token that it belongs to.
var tokenWithHole = regexp.MustCompile(`[\w.~/$-]*(` + hole.String() + `[\w.~/$-]*)+`)

var contextWord = regexp.MustCompile(`[A-Za-z]{3,}`)

func TestSecretsOfTheCorpusAreGone(t *testing.T) {
	r := newRedactor(t)
	total, words, kept := 0, 0, 0
	for i, line := range readLines(t, "secrets.txt") {
		text, secrets := fill(t, line, i*100)
		if len(secrets) == 0 {
			t.Fatalf("line %d has no secret: %s", i+1, line)
		}
		out := checkText(t, r, text)
		for _, secret := range secrets {
			total++
			if leaks(secret, out) {
				t.Errorf("line %d: %q survives in %q", i+1, secret, out)
			}
		}
		for _, word := range contextWord.FindAllString(tokenWithHole.ReplaceAllString(line, " "), -1) {
			words++
			if strings.Contains(out, word) {
				kept++
			}
		}
	}
	t.Logf("%d secrets, %d of %d other words kept", total, kept, words)
	if total < 300 {
		t.Errorf("the corpus has %d secrets, want 300 or more", total)
	}
	if float64(kept) < .97*float64(words) {
		t.Errorf("%d of %d words around secrets survive, want 97 %%", kept, words)
	}
}

func TestBenignLinesStay(t *testing.T) {
	r := newRedactor(t)
	lines := readLines(t, "benign.txt")
	if len(lines) < 200 {
		t.Errorf("the corpus has %d benign lines, want 200 or more", len(lines))
	}
	for i, line := range lines {
		if out := r.Text(line); out != line {
			t.Errorf("line %d: %q became %q", i+1, line, out)
		}
	}
}

func TestEveryVendor(t *testing.T) {
	r := newRedactor(t)
	for row, v := range vendors {
		t.Run(fmt.Sprintf("%d_%s", row, v.kind), func(t *testing.T) {
			token := backText(v, row) + v.prefix + bodyText(v, row)
			for _, frame := range []string{"%s", "it is %s, see above", `{"a":"%s"}`, "x=%s\n", `\n%s\n`} {
				out := r.Text(fmt.Sprintf(frame, token))
				if leaks(token[len(token)-min(len(token), 12):], out) {
					t.Errorf("Text(%q) = %q", fmt.Sprintf(frame, token), out)
				}
			}
			if v.back > 0 {
				return
			}
			if made := v.prefix + strings.Repeat("x", max(v.min, 6)); r.Text(made) != made {
				t.Errorf("Text changes the placeholder %q", made)
			}
		})
	}
}

// bodyText answers a body as the row asks for it.
func bodyText(v vendor, seed int) string {
	n := v.min
	if v.max == 0 {
		n += 4
	}
	var chars string
	for c := range 128 {
		if v.body[c] && isAlnum(byte(c)) {
			chars += string(rune(c))
		}
	}
	body := []byte(random("digits", n, seed))
	rng := rand.New(rand.NewPCG(uint64(seed), 7))
	for i := range body {
		body[i] = chars[rng.IntN(len(chars))]
	}
	if n > 3 {
		body[1] = '7'
		if v.body.has('k') {
			body[0], body[2] = 'k', 'Q'
		}
	} else {
		return "14"[:n]
	}
	return string(body)
}

func backText(v vendor, seed int) string {
	if v.back == 0 {
		return ""
	}
	if !v.backOf.has('a') {
		return random("digits", v.back+1, seed)
	}
	return random("alnum", v.back, seed)
}

// TestSplice writes a labelled secret, wrapped in each way, into texts of each kind at every place, inside words too.
func TestSplice(t *testing.T) {
	r := newRedactor(t)
	around := []string{
		"The quick brown fox, 12 of them; jumped (over) the lazy dog.\nNext line: nothing.", `{"role":"user","content":"hello there","n":[1,2,{"a":null}]}`,
		"a=1&b=2&c=%20x", "| a | b |\n|---|---|\n| 1 | 2 |\n", "Ein Satz mit Umlauten: äöü ß – und 中文字符。", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
	}
	for w, wrap := range wrappings {
		for l, label := range labelled {
			secret := random("alnum", 24, 1000*w+l)
			piece := wrap(label(secret))
			if w >= firstEncoded {
				piece = " " + piece + " "
			}
			for _, text := range around {
				for at := range len(text) + 1 {
					s := strings.ToValidUTF8(text[:at], "") + piece + strings.ToValidUTF8(text[at:], "")
					if out := checkText(t, r, s); survives(out, secret) {
						t.Fatalf("wrapping %d, label %d: %q survives in %q", w, l, secret, out)
					}
				}
			}
		}
	}
}
