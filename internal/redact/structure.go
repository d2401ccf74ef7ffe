package redact

import "strings"

// userinfoAt reads the password of an address whose "://" begins at p.
func (sc *scanner) userinfoAt(p int) int {
	s := sc.s
	if p == 0 || !isAlnum(s[p-1]) {
		return 0
	}
	begin := p + 3
	colonAt, at, slash := -1, -1, -1
	limit := min(len(s), begin+maxJudged)
	for i := begin; i < limit; i++ {
		c := s[i]
		if isSpace(c) || c == '"' || c == '<' || c == '>' || c == '`' || c == '\\' && i+1 < limit && s[i+1] == '"' || c == '\'' && at >= 0 {
			break
		}
		switch c {
		case ':':
			if colonAt < 0 && slash < 0 && at < 0 {
				colonAt = i
			}
			if strings.HasPrefix(s[i:], "://") && colonAt != i {
				limit = i
			}
		case ';':
			if at < 0 && slash < 0 && (colonAt < 0 || isDigits(s[colonAt+1:i])) {
				limit = i // jdbc:sqlserver://host:1433;user=x, whose parts are settings
			}
		case '@':
			if slash < 0 || colonAt >= 0 && at < 0 && !isDigits(s[colonAt+1:slash]) {
				at = i
			}
		case '/', '?', '#':
			if slash < 0 {
				slash = i
			}
		case '[':
			if end := tagEnd(s, i); end > 0 {
				i = end - 1
			}
		}
	}
	if at < 0 {
		return 0
	}
	if colonAt < 0 {
		return sc.userToken(begin, at)
	}
	if v := s[colonAt+1 : at]; v == "" || isPlaceholder(v) || isVariableList(v) {
		return 0
	}
	return sc.add("url_password", colonAt+1, at)
}

// userToken notes a token that stands in place of a user before the @ of an address.
func (sc *scanner) userToken(begin, at int) int {
	v := sc.s[begin:at]
	if sh := shapeOf(v); !sh.random(len(v), 20) || isPlaceholder(v) || hasFold(sc.s, at+1, "o") && strings.Contains(sc.s[at:min(len(sc.s), at+64)], "sentry") {
		return 0
	}
	return sc.add("url_token", begin, at)
}

func isDigits(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return true
}

// isVariableList tells whether v is nothing but variables: $A, ${A}, {a}.
func isVariableList(v string) bool {
	return v[0] == '$' && isVariable(v[1:]) || v[0] == '{' || v[0] == '<' || v[0] == '%' && len(v) > 2 && v[len(v)-1] == '%' || isShouted(v)
}

// jwtAt reads a JSON Web Token in compact form: base64url parts with dots between them, the first a JSON object.
func (sc *scanner) jwtAt(start int) int {
	s := sc.s
	if s[start:min(len(s), start+3)] != "eyJ" {
		return 0
	}
	if start < sc.noJWT {
		return 0
	}
	first := run(s, start, charsDash, len(s))
	sc.noJWT = first
	if first-start < 12 || first+1 >= len(s) || s[first] != '.' {
		return 0
	}
	end := first
	for parts := 1; parts < 5 && end < len(s) && s[end] == '.'; parts++ {
		stop := run(s, end+1, charsDash, len(s))
		if stop == end+1 && parts > 2 {
			break
		}
		end = stop
	}
	if end-first < 10 || isPlaceholderToken(s[start+3:end]) {
		return 0
	}
	return sc.add("jwt", start, end)
}

// hashPrefixes begin the hash of a password.
var hashPrefixes = []string{
	"$1$", "$2a$", "$2b$", "$2y$", "$2x$", "$5$", "$6$", "$7$", "$8$", "$9$", "$y$", "$gy$", "$argon2", "$pbkdf2", "$scrypt$", "$apr1$", "$bcrypt-", "$sha1$",
	"$p$", "$h$", "$s$", "{ssha", "{sha", "{smd5}", "{crypt}", "{pbkdf2", "{argon2", "pbkdf2_sha256$", "pbkdf2_sha1$", "bcrypt_sha256$", "scram-sha-256$",
	"scram-sha-1$", "pbkdf2:sha256:", "pbkdf2:sha1:", "scrypt:32768:", "argon2$argon2",
}

// hashAt reads the hash of a password whose prefix is s[start:end].
func (sc *scanner) hashAt(start, end int) int {
	s := sc.s
	stop := run(s, end, charsHash, 512)
	for ; stop < len(s) && (s[stop] == ':' || s[stop] == '}') && stop-end < 160 && stop+1 < len(s) && isAlnum(s[stop+1]) && !hasFold(s, start, "$"); stop = run(s, stop+1, charsHash, 512) {
	}
	for stop > end && (s[stop-1] == '.' || s[stop-1] == ',') {
		stop--
	}
	sh := shapeOf(s[end:stop])
	if stop-end < 16 || sh.distinct < 8 || sh.digits == 0 || isPlaceholderToken(s[end:stop]) {
		return 0
	}
	return sc.add("hash", start, stop)
}
