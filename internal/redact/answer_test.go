package redact

import (
	"strings"
	"testing"
)

// TestAnswers: what is said to a question for a secret is one, though nothing in it
// says so.
func TestAnswers(t *testing.T) {
	r := newRedactor(t)
	for _, tc := range []struct{ question, answer, secret string }{
		{"To go on I need the Wi-Fi. What is your Wi-Fi password?", "tulips-at-noon-7", "tulips-at-noon-7"},
		{"Please send me the API key for the staging server.", "sure, it's 9f8e7d6c5b4a39281706f5e4d3c2b1a0", "9f8e7d6c5b4a39281706f5e4d3c2b1a0"},
		{"what was the password of the nas again?", "It is Pelican_31.", "Pelican_31"},
		{"Enter the verification code:", "481516", "481516"},
		{"Wie lautet das Passwort?", "Walross-1987", "Walross-1987"},
		{"¿Cuál es la contraseña?", "es Morsa_1987", "Morsa_1987"},
	} {
		asked := r.Asks(tc.question)
		if asked == "" {
			t.Errorf("%q asks for a secret", tc.question)
			continue
		}
		if out := r.Answer(asked, tc.answer); strings.Contains(out, tc.secret) || !strings.Contains(out, tagOpen) {
			t.Errorf("%q: %q", tc.question, out)
		}
	}
	for _, question := range []string{"How are you?", "What is your favourite tea?", "Where do you keep your password?", "I changed the password.", ""} {
		if asked := r.Asks(question); asked != "" {
			t.Errorf("%q asks for nothing secret, not %q", question, asked)
		}
	}
	for _, answer := range []string{"I don't know it", "Bitwarden", "none of your business", "see docs/login.md", "ask Ada", ""} {
		if out := r.Answer(r.Asks("What is your password?"), answer); out != answer {
			t.Errorf("%q became %q", answer, out)
		}
	}
}

// TestAnswerIsTextWithoutAQuestion: Answer is Text where nothing was asked.
func TestAnswerIsTextWithoutAQuestion(t *testing.T) {
	r := newRedactor(t)
	for _, line := range append(readLines(t, "benign.txt"), "password=Walrus_87x") {
		if got, want := r.Answer("", line), r.Text(line); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
