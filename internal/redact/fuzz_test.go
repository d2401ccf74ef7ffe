package redact

import (
	"encoding/base64"
	"encoding/json"
	"html"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

// wrappings are the ways in which a text comes quoted, escaped or encoded as a whole.
var wrappings = []func(string) string{
	func(s string) string { return s },
	func(s string) string { return `"` + s + `"` },
	func(s string) string { return "'" + s + "'" },
	func(s string) string { return "`" + s + "`" },
	jsonString,
	func(s string) string { return jsonString(jsonString(s)) },
	html.EscapeString,
	url.QueryEscape,
	url.PathEscape,
	func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
}

// firstEncoded is the first of wrappings that cannot stand in the middle of a word: base64 has no beginning of its own.
const firstEncoded = 9

func jsonString(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always has a form in JSON
	}
	return string(b)
}

// labelled are the ways in which a secret is written with what it is.
var labelled = []func(secret string) string{
	func(s string) string { return "password=" + s },
	func(s string) string { return "password: " + s },
	func(s string) string { return `"password": "` + s + `"` },
	func(s string) string { return "api_key='" + s + "'" },
	func(s string) string { return "export SERVICE_TOKEN=" + s },
	func(s string) string { return "--client-secret " + s },
	func(s string) string { return "Authorization: Bearer " + s },
	func(s string) string { return "<secret>" + s + "</secret>" },
	func(s string) string { return "https://jo:" + s + "@example.com/x" },
	func(s string) string { return "my password is " + s + " since today" },
}

// checkText fails the test if Text breaks one of its promises for s, and answers its result.
func checkText(t *testing.T, r *Redactor, s string) string {
	t.Helper()
	out := r.Text(s)
	if !utf8.ValidString(out) {
		t.Fatalf("Text(%q) = %q, not valid UTF-8", s, out)
	}
	if again := r.Text(out); again != out {
		t.Fatalf("Text(%q) = %q, and Text of that is %q", s, out, again)
	}
	return out
}

// FuzzRedact splices a labelled secret, wrapped in one of wrappings, into a text at any place.
func FuzzRedact(f *testing.F) {
	for i, piece := range []string{"", "some words around it", "a=b&c=d\n", `{"a":["b",{"c":"`, "-----BEGIN PRIVATE KEY-----\nabc", "\xff\x00\n\t", "密码是", "[REDACTED:x#0000]"} {
		for w := range wrappings {
			f.Add(piece, uint16(i*3), uint8(w), uint8(i), uint64(i*7+w))
		}
	}
	r := newRedactor(f)
	f.Fuzz(func(t *testing.T, text string, offset uint16, wrapping, label uint8, seed uint64) {
		if len(text) > 4096 {
			text = text[:4096]
		}
		checkText(t, r, text)
		secret := random("alnum", 24, int(seed&0xffffff))
		at := int(offset) % (len(text) + 1)
		spliced := wrappings[int(wrapping)%len(wrappings)](labelled[int(label)%len(labelled)](secret))
		// Arbitrary bytes right before or after may make another token of it; TestSplice does without the line breaks.
		out := checkText(t, r, text[:at]+"\n"+spliced+"\n"+text[at:])
		if survives(out, secret) {
			t.Fatalf("secret %q survives in %q", secret, out)
		}
	})
}

// survives tells whether secret, or eight characters of it in a row, stands in out, plain or in base64.
func survives(out, secret string) bool {
	for i := 0; i+8 <= len(secret); i++ {
		if strings.Contains(out, secret[i:i+8]) {
			return true
		}
	}
	return strings.Contains(out, base64.RawStdEncoding.EncodeToString([]byte(secret[:18])))
}
