package redact

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// schemeAt reads the credential after "Bearer " or "Basic ", wherever the two stand.
func (sc *scanner) schemeAt(start, end int) int {
	s := sc.s
	if !startsWord(s, start) {
		return 0
	}
	v := sc.plainValue(skipBlanks(s, end), bare, maxJudged)
	text := v.of(s)
	if text == "" || isPlaceholder(text) {
		return 0
	}
	sh := shapeOf(text)
	if lower(s[start+1]) == 'a' { // Basic
		if !isBasic(text) {
			return 0
		}
		return sc.addValue(authHeader, v)
	}
	if !sh.random(len(text), 12) && !(len(text) >= 20 && sh.letters() >= 20 && sh.joiners == 0) || isOrdinary(text) || isResourceName(text, sh) {
		return 0
	}
	if v.next == v.start+maxJudged {
		v = sc.plainValue(v.start, bare, len(s))
	}
	return sc.addValue(authHeader, v)
}

// isBasic tells whether text is base64 of user:password.
func isBasic(text string) bool {
	if len(text) < 8 || len(text) > 1024 {
		return false
	}
	plain, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	return err == nil && utf8.Valid(plain) && strings.IndexByte(string(plain), ':') >= 0
}

// proofs are the parameters of Authorization schemes that sign instead of showing the credential.
var proofs = setOf(`signature response mac oauth_signature oauth_token oauth_consumer_key token`)

// authorization reads the header whose name ends at p.
func (sc *scanner) authorization(p int) int {
	s := sc.s
	p, quoted := closers(s, p)
	at, x := operator(s, skipBlanks(s, p), quoted)
	if x == noSyntax {
		return 0
	}
	p = skipPrefixes(s, skipBlanks(s, at))
	if body, _, closing := opening(s, p); closing != "" {
		p = body
	}
	limit := min(sc.lineEnd(p), p+4096)
	if scheme := run(s, p, charsDash, 32); scheme < limit && s[scheme] == ' ' {
		if comma := strings.IndexByte(s[scheme:limit], '='); comma > 0 && isSigning(s[p:scheme]) {
			return sc.parameters(scheme, limit)
		}
		p = skipBlanks(s, scheme)
		if !isWords(s[scheme-1:scheme], "") {
			p = skipBlanks(s, scheme)
		}
	}
	if p >= len(s) {
		return 0
	}
	if end := tagEnd(s, p); end > 0 {
		return end
	}
	v := sc.plainValue(p, bare, maxJudged)
	text := v.of(s)
	sh := shapeOf(text)
	if len(text) < 6 || isPlaceholder(text) || isExpression(text) || text[0] == '{' || sh.digits == 0 && sh.humps == 0 && sh.symbols == 0 && (sh.lowers < 16 || sh.joiners > 0) {
		return 0
	}
	if v.next == p+maxJudged {
		v = sc.plainValue(p, bare, len(s))
	}
	return sc.addValue(authHeader, v)
}

func isSigning(scheme string) bool {
	for _, known := range []string{"aws4-hmac-sha256", "digest", "oauth", "hawk", "mac", "signature", "token"} {
		if strings.EqualFold(scheme, known) {
			return true
		}
	}
	return false
}

// parameters notes the values of the proofs in s[p:limit], a list of name=value.
func (sc *scanner) parameters(p, limit int) int {
	s := sc.s
	last := 0
	for p < limit {
		for p < limit && (isBlank(s[p]) || s[p] == ',') {
			p++
		}
		end := run(s, p, charsDash, 48)
		if end >= limit || s[end] != '=' {
			break
		}
		v, ok := sc.quotedValue(end + 1)
		if !ok {
			v = sc.plainValue(end+1, bare, maxJudged)
		}
		if isOneOf(proofs, s[p:end]) && v.end-v.start >= 8 && !isPlaceholder(v.of(s)) {
			last = sc.addValue(signature, v)
		}
		p = max(v.next, end+1)
	}
	return last
}

// sessionWords are parts of the names of cookies that carry a session.
var sessionWords = toBytes([]string{
	"sess", "sid", "auth", "token", "jwt", "remember", "login", "secret", "csrf", "xsrf", "identity", "access", "refresh", "user_",
})

// harmless are cookies with long values that carry none.
var harmless = setOf(`
	_ga _gid _gat _fbp _gcl_au __utma __utmz theme lang locale tz timezone path domain expires max-age samesite consent cookieconsent currency country
	version priority ab_test experiment __hstc hubspotutk _hjid optimizelyenduserid amplitude_id intercom-id visitor_id`)

// cookies reads the Cookie or Set-Cookie header whose name ends at p.
func (sc *scanner) cookies(p int) int {
	s := sc.s
	p, quoted := closers(s, p)
	at, x := operator(s, skipBlanks(s, p), quoted)
	if x == noSyntax {
		return 0
	}
	p = skipBlanks(s, at)
	if body, _, closing := opening(s, p); closing != "" {
		p = body
	}
	limit := min(sc.lineEnd(p), p+maxQuoted)
	last := 0
	for p < limit {
		end := run(s, p, charsName, 64)
		if end == p || end >= limit || s[end] != '=' {
			break
		}
		v := sc.plainValue(end+1, query, maxJudged)
		if isSession(s[p:end], v.of(s)) {
			v = sc.plainValue(end+1, query, len(s))
			last = sc.addValue(cookie, v)
		}
		p = v.next
		if p >= limit || s[p] != ';' && s[p] != '&' {
			break
		}
		p = skipBlanks(s, p+1)
	}
	return last
}

// isSession tells whether a cookie carries a session.
func isSession(name, v string) bool {
	sh := shapeOf(v)
	if len(v) < 6 || isOneOf(harmless, name) || isPlaceholder(v) {
		return false
	}
	if containsAny(name, sessionWords) {
		return sh.digits > 0 || sh.humps > 0 || len(v) >= 16
	}
	return sh.random(len(v), 20)
}
