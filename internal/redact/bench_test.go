package redact

import (
	"fmt"
	"strings"
	"testing"
)

// chatText answers about size bytes of chat: 1 % of the lines hold a secret, 5 % a keyword without one.
func chatText(size int) string {
	plain := []string{
		"Could you look at the chart again? The second series starts in March, not in May.",
		"We moved the meeting to Thursday at 10:30, room 4.12, and Maria will bring the samples.",
		"2026-11-20T15:04:05Z INFO checkpoint done items=12 batch=4 session=01HFT3P70JGH2Y1FGZ10J309P5",
		"Die Lieferung kommt am Freitag, sagt Jonas; bis dahin bleibt alles, wie es ist.",
		`{"role":"assistant","content":"Sure, I sorted the list by date and removed the duplicates.","n":41}`,
		"func (s *Store) Get(ctx context.Context, id string) (Item, error) { return s.items[id], nil }",
	}
	keyword := []string{
		"The token budget is 6000 for this turn, and the password policy changed last week.",
		"Please reset your password in the settings; the secret is to keep the key points short.",
	}
	var b strings.Builder
	for n := 0; b.Len() < size; n++ {
		switch {
		case n%100 == 17:
			fmt.Fprintf(&b, "export DB_PASSWORD=%s && make migrate\n", random("alnum", 20, n))
		case n%20 == 3:
			b.WriteString(keyword[n/20%len(keyword)] + "\n")
		default:
			b.WriteString(plain[n%len(plain)] + "\n")
		}
	}
	return b.String()
}

func benchmarkText(b *testing.B, text string) {
	r := newRedactor(b)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if r.Text(text) == "" {
			b.Fatal("empty")
		}
	}
}

func BenchmarkMixed(b *testing.B) { benchmarkText(b, chatText(1<<20)) }

func BenchmarkPlain(b *testing.B) {
	benchmarkText(b, strings.Repeat("Nothing in this line is worth hiding, and it goes on for a while.\n", 1<<14))
}

func BenchmarkSecrets(b *testing.B) {
	var text strings.Builder
	for n := range 4096 {
		fmt.Fprintf(&text, "API_TOKEN=%s\npassword: %s\n%s%s\n", random("alnum", 32, n), random("alnum", 14, n), "ghp"+"_", random("alnum", 36, n))
	}
	benchmarkText(b, text.String())
}

// adversarial are pieces that a careless scanner would read again and again.
var adversarial = map[string]string{
	"letters": "a", "armor": "-----BEGIN ", "private armor": "-----BEGIN PRIVATE KEY-----", "assignments": "password=", "colons": "password:", "open quotes": `password="`,
	"other quotes": `password='`, "tokens": "token=", "jwt": "eyJ", "jwt parts": "eyJhbGciOiJ.", "base64": "QUJDREVGR0hJSktM", "quotes": `"'`, "escapes": `\"`,
	"schemes": "://", "userinfo": "a://b:", "percent": "%41", "unicode": "\\u0041", "entities": "&quot;", "spaces": " ", "newlines": "\n", "digits": "4", "cards": "4111 ",
	"names": "password ", "prose": "password for the ", "seed": "seed phrase ", "words": "amber ", "logins": "login with ", "sk": "sk-", "vendor": "ghp_aaaaaaaaaaaaaaaaaaaaaaaa",
	"brackets": "password=[", "tags": tagOpen, "whole tags": "password=[REDACTED:password#0000] ", "cells": "| password |\n", "csv": "password,password\n", "keys": `{"kty":`,
	"block": "password: |\n  ", "element": "<password>", "commands": "mysql -p", "curl": "curl -u ", "bearer": "bearer ", "cookie": "Cookie: a=b; ", "cookies": "cookie=",
	"authorization": "Authorization: OAuth a=", "hashes": "$2b$", "hash body": "$6$abc", "wifi": "wifi:", "pgpass": ":5432:", "echo": "--password-stdin ", "chinese": "密码是", "russian": "пароль ",
	"iban": "DE89", "dots": "a.", "dashes": "-----", "tagged": "</a><b>", "lists": `password=["`, "plus": `password="abcdef1" + `, "value": `"password","value":`, "terraform": `"password" { `,
	"private-lines": "Private-Lines: 1\n", "codes": "otp: 1234 1234 ", "groups": "token: ABCD EFGH ", "notes": "password (", "backticks": "`", "invisible": "\u200b", "mixed case": "aB1",
	"secret then space": "secret ", "as password": "as password ", "basic": "Basic QWxhZGRpbjpvcGVu ", "cdata": "<password><![CDATA[",
}

func BenchmarkAdversarial(b *testing.B) {
	for name, piece := range adversarial {
		for _, size := range []int{1e3, 1e5, 1e6} {
			b.Run(fmt.Sprintf("%s/%d", strings.ReplaceAll(name, " ", "_"), size), func(b *testing.B) {
				benchmarkText(b, strings.Repeat(piece, size/len(piece)+1)[:size])
			})
		}
	}
}
