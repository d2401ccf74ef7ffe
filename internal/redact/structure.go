package redact

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// maxArmor bounds how far the end of a key in armor is looked for.
const maxArmor = 1 << 16

// armorAt reads the body of the private key whose first line begins at start. Public keys and certificates stay.
func (sc *scanner) armorAt(start int) int {
	s := sc.s
	if hasFold(s, start, "private-lines:") {
		return sc.ppkAt(start + len("private-lines:"))
	}
	title := run(s, start, charsDashSpace, 80)
	close := strings.Index(s[start+4:title], "----") // after the opening dashes
	if at := strings.Index(s[start+6:title], "----"); at >= 0 {
		close = at + 2
	}
	if close < 0 {
		return 0
	}
	head := start + 4 + close
	label := s[start:head]
	for head < title && s[head] == '-' {
		head++
	}
	if !strings.Contains(label, "PRIVATE") && !strings.Contains(label, "SECRET") {
		return 0
	}
	end := sc.armorEnd(head)
	body := skipArmorHeaders(s, head, end)
	for body < end && !isAlnum(s[body]) {
		body++
	}
	if body > head && body < end && strings.IndexByte("nr", s[body]) >= 0 && s[body-1] == '\\' {
		for body < end && (s[body-1] == '\\' && strings.IndexByte("nr", s[body]) >= 0 || !isAlnum(s[body])) {
			body++
		}
	}
	for end > body && !isAlnum(s[end-1]) && s[end-1] != '=' {
		end--
	}
	for end-2 >= body && s[end-2] == '\\' && (s[end-1] == 'n' || s[end-1] == 'r') {
		end -= 2
		for end > body && s[end-1] == '\\' {
			end--
		}
	}
	if end-body < 12 {
		return 0
	}
	if resume := sc.add("private_key", body, end); body-head <= 8 {
		return resume
	}
	return 0 // the headers before the body are still to be read
}

var charsDashSpace = newCharset(alnums + "- ")

// armorEnd answers where the body ends that begins at head: before its END line, or after the last line that looks like a body.
func (sc *scanner) armorEnd(head int) int {
	s := sc.s
	limit := min(len(s), head+maxArmor)
	if at := strings.Index(s[head:limit], "----"); at >= 0 {
		mark := head + at
		limit = mark
		rest := strings.TrimLeft(s[mark:min(len(s), mark+16)], "- ")
		if (strings.HasPrefix(rest, "END") || strings.HasPrefix(rest, "end")) && isArmorBody(s[head:mark]) {
			return mark
		}
	}
	end := head
	for p := head; p < limit; {
		next := armorLineEnd(s, p, limit)
		line := strings.Trim(s[p:next], " \t\r\n\\\"'>|+,#*")
		if at := strings.IndexByte(line, '\\'); at >= 0 && at < len(line)-2 {
			break // an escape of other text
		}
		words := strings.Fields(line)
		header := strings.Contains(line, ": ")
		if len(words) > 1 && !header && !isArmorBody(line) || strings.HasPrefix(line, "----") {
			break
		}
		if len(words) > 0 && !header {
			if p == head && len(words[0]) < 16 || len(words[0]) < 16 && shapeOf(line).digits == 0 && end == head {
				break
			}
			end = p + strings.Index(s[p:next], line) + len(line)
		}
		p = next + 1
	}
	return end
}

// armorLineEnd answers where the line at p ends, be the line break a real or an escaped one.
func armorLineEnd(s string, p, limit int) int {
	for i := p; i < limit; i++ {
		if s[i] == '\n' || s[i] == '\\' && i > p && i+1 < limit && s[i+1] == 'n' {
			return i
		}
	}
	return limit
}

// isArmorBody tells whether body is mostly base64, with few blanks in it.
func isArmorBody(body string) bool {
	good, blanks, lettersOnly := 0, 0, 0
	for i := range len(body) {
		switch c := body[i]; {
		case isAlnum(c) || c == '+' || c == '/' || c == '=':
			good++
		case c == ' ':
			blanks++
		}
	}
	for w := range strings.FieldsSeq(body) {
		if len(w) < 12 && isWords(w, "") {
			lettersOnly++
		}
	}
	return good >= 16 && lettersOnly <= 2+blanks/8 && blanks*4 < good
}

// skipArmorHeaders skips lines such as "Proc-Type: 4,ENCRYPTED" at the top of a body.
func skipArmorHeaders(s string, p, end int) int {
	for p < end {
		next := armorLineEnd(s, p, end)
		if line := strings.TrimLeft(s[p:next], "\\nr \t\r\n>|"); strings.Trim(line, " \t") != "" {
			if at := strings.Index(line, ": "); at <= 0 || at > 20 {
				return p
			}
		}
		p = next + 1
	}
	return p
}

// ppkAt reads the lines of base64 after "Private-Lines: n" of a PuTTY key.
func (sc *scanner) ppkAt(p int) int {
	s := sc.s
	p = sc.lineEnd(p)
	start := skipSpaces(s, p)
	end := start
	for line := start; line < len(s); {
		stop := run(s, line, charsBase64, 100)
		if stop-line < 8 || stop < len(s) && !isSpace(s[stop]) {
			break
		}
		end = stop
		line = skipSpaces(s, stop)
	}
	if end-start < 12 {
		return 0
	}
	return sc.add("private_key", start, end)
}

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
	if len(text) < 6 || isPlaceholder(text) || sh.digits == 0 && sh.humps == 0 && sh.symbols == 0 && (sh.lowers < 16 || sh.joiners > 0) {
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

// setting is a phrase of a configuration or programming language right before a secret.
type setting int

const (
	setNext   setting = iota // the next word or string
	setSecond                // the second string of a call
	setBy                    // the string after the next "by"
	setWifi                  // the field P of a Wi-Fi address
	setLine                  // the last of five fields with colons between them
	setEcho                  // the word that an echo before hands on
	setUser                  // the word after the next
	setKeys                  // the private members of a JSON Web Key
	setAny                   // any string of a call that stands as a secret
	setBefore                // the password before the @ of a data source
	setProven                // the code that is to be typed in to prove something
	setLast                  // the last argument of htpasswd -b
	setSlash                 // the password of user/password@host
)

var settings = map[string]setting{
	"identified by": setNext, "identified with": setBy, "convertto-securestring": setNext, "snmp-server community": setNext,
	"snmp community": setNext, "vault login": setNext, "enable secret": setNext, "encrypted password": setNext, "--from-literal=password": setNext,
	"password(": setNext, "with password": setNext, "password '": setNext,
	"-passin pass:": setNext, "-passout pass:": setNext, "rclone obscure": setNext, "auth plain ": setNext, "auth login ": setNext,
	"basicauth(": setSecond, "basic_auth=(": setSecond, "auth=(": setSecond, "auth = (": setSecond, "networkcredential(": setSecond, "basic_auth(": setSecond,
	"basiccredentials(": setSecond, ".login(": setSecond, "passwordauthentication(": setSecond, "usernamepasswordcredentials(": setSecond, "authenticate(": setSecond,
	"credentials(": setSecond, "plainauth(": setSecond, "auth=[": setSecond, "auth: [": setSecond,
	"wifi:": setWifi, ":5432:": setLine, ":*:": setLine, ":3306:": setLine, ":5433:": setLine, ":6432:": setLine,
	".connect(": setAny, "jwt.sign(": setAny, "jwt.verify(": setAny, "hmac.new(": setAny, "createhmac(": setAny, ".client(": setAny,
	"htpasswd -": setLast, "sqlplus ": setSlash, "sqlplus -s ": setSlash,
	"@tcp(": setBefore, "@unix(": setBefore, " to verify": setProven, " to sign in": setProven, " to log in": setProven, " to confirm": setProven,
	"<auth-user-pass>": setUser, "/user:": setUser, "::add-mask::": setNext, "\"kty\"": setKeys,
	"--password-stdin": setEcho, "sudo -s": setEcho, "chpasswd": setEcho, "--with-token": setEcho,
}

// settingAt reads the secret after the setting s[start:end].
func (sc *scanner) settingAt(kind setting, start, end int) int {
	s := sc.s
	switch kind {
	case setNext:
		return sc.nextString(end)
	case setSecond:
		return sc.secondString(end)
	case setBy:
		limit := min(len(s), end+80)
		if at := strings.Index(strings.ToLower(s[end:limit]), " by "); at >= 0 {
			return sc.nextString(end + at + 4)
		}
	case setWifi:
		return sc.wifi(end)
	case setLine:
		return sc.pgpass(start)
	case setEcho:
		return sc.echoed(start)
	case setUser:
		return sc.take(password, skipSpaces(s, wordEnd(s, skipSpaces(s, end))), bare)
	case setKeys:
		sc.webKey(start)
	case setAny:
		return sc.anyString(end)
	case setBefore:
		return sc.sourcePassword(start)
	case setProven:
		sc.takeBefore(pin, start)
	case setLast:
		return sc.lastArgument(end)
	case setSlash:
		word := s[end:wordEnd(s, end)]
		if slash, at := strings.IndexByte(word, '/'), strings.LastIndexByte(word, '@'); slash > 0 && at > slash+3 && !isPlaceholder(word[slash+1:at]) {
			return sc.add("password", end+slash+1, end+at)
		}
	}
	return 0
}

// lastArgument notes the last word of the command whose flags begin at p, if they have the b of htpasswd for a password in the command.
func (sc *scanner) lastArgument(p int) int {
	s := sc.s
	flags := wordEnd(s, p)
	end := min(sc.lineEnd(p), flags+maxJudged)
	if at := strings.IndexAny(s[flags:end], "|;&>#"); at >= 0 {
		end = flags + at
	}
	line := strings.TrimRight(s[flags:end], " \t\r")
	at := strings.LastIndexByte(line, ' ')
	if !strings.Contains(s[p:flags], "b") || at < 0 || strings.Count(line, " ") < 2 || isPlaceholder(line[at+1:]) {
		return 0
	}
	v, ok := sc.quotedValue(flags + at + 1)
	if !ok {
		v = value{start: flags + at + 1, end: flags + len(line)}
	}
	return sc.addValue(password, v)
}

// anyString notes the first of the strings that begin at p, with commas between them, that stands as a secret.
func (sc *scanner) anyString(p int) int {
	s := sc.s
	for range 6 {
		p = skipSpaces(s, p)
		if v, ok := sc.quotedValue(p); ok {
			text := v.of(s)
			if sh := shapeOf(text); sh.random(len(text), 8) && stands(text, sh) && !isPlaceholder(text) && !isResourceName(text, sh) && strings.IndexByte(text, '@') < 0 {
				return sc.addValue(password, v)
			}
			p = v.next
		} else {
			p = run(s, p, charsDot, 64)
		}
		if p = skipSpaces(s, p); p >= len(s) || s[p] != ',' {
			return 0
		}
		p++
	}
	return 0
}

// sourcePassword notes the password of user:password@tcp(host), whose @ is at p.
func (sc *scanner) sourcePassword(p int) int {
	s := sc.s
	begin := p
	for begin > 0 && p-begin < 256 && !isSpace(s[begin-1]) && strings.IndexByte("\"'`=/", s[begin-1]) < 0 {
		begin--
	}
	at := strings.IndexByte(s[begin:p], ':')
	if at < 0 || begin+at+1 >= p || isPlaceholder(s[begin+at+1:p]) {
		return 0
	}
	sc.add("url_password", begin+at+1, p)
	return 0
}

// webKey notes the private members of the JSON Web Key (RFC 7517) around p.
func (sc *scanner) webKey(p int) {
	s := sc.s
	if p < sc.keysEnd {
		return
	}
	from := max(sc.keysEnd, p-4096)
	if at := strings.LastIndexByte(s[from:p], '{'); at >= 0 {
		from += at
	}
	end := min(len(s), p+8192)
	if at := strings.IndexByte(s[p:end], '}'); at >= 0 {
		end = p + at
	}
	sc.keysEnd = end
	for _, member := range []string{`"d"`, `"k"`, `"p"`, `"q"`, `"dp"`, `"dq"`, `"qi"`} {
		at := strings.Index(s[from:end], member)
		if at < 0 {
			continue
		}
		q, x := operator(s, skipBlanks(s, from+at+len(member)), true)
		if v, ok := sc.quotedValue(skipSpaces(s, q)); ok && x != noSyntax && v.end-v.start >= 16 && !isPlaceholder(v.of(s)) {
			sc.addValue(token, v)
		}
	}
}

// nextString notes the string at p, or the word if it cannot be one of prose.
func (sc *scanner) nextString(p int) int {
	s := sc.s
	p = skipBlanks(s, p)
	if p < len(s) && s[p] == '(' {
		p++
	}
	if hasFold(s, p, "-string ") {
		p = skipBlanks(s, p+len("-string "))
	}
	for p+1 < len(s) && isDigit(s[p]) && s[p+1] == ' ' { // Cisco: the kind of encryption
		p += 2
	}
	if v, ok := sc.quotedValue(p); ok {
		if v.end-v.start >= 3 && !isPlaceholder(v.of(s)) && !isOneOf(fillers, v.of(s)) {
			return sc.addValue(password, v)
		}
		return 0
	}
	return sc.take(password, p, bare)
}

// secondString notes the second string of the call whose arguments begin at p.
func (sc *scanner) secondString(p int) int {
	s := sc.s
	for range 4 {
		p = skipSpaces(s, p)
		v, ok := sc.quotedValue(p)
		p = v.next
		if !ok {
			return 0
		}
		p = skipSpaces(s, p)
		if p >= len(s) || s[p] != ',' {
			return 0
		}
		p = skipSpaces(s, p+1)
		if v, ok = sc.quotedValue(p); ok && isTag(v.of(s)) {
			return 0
		} else if ok && v.end-v.start >= 3 && !isPlaceholder(v.of(s)) && !strings.Contains(v.of(s), " ") && !strings.Contains(v.of(s), "@") {
			return sc.addValue(password, v)
		}
	}
	return 0
}

// wifi reads the password of an address such as WIFI:T:WPA;S:name;P:x;; that goes on at p.
func (sc *scanner) wifi(p int) int {
	s := sc.s
	limit := min(sc.lineEnd(p), p+256)
	at := strings.Index(";"+s[p:limit], ";P:")
	if at < 0 {
		return 0
	}
	start := p + at + 2
	stop := strings.IndexByte(s[start:limit], ';')
	if stop < 1 {
		return 0
	}
	return sc.add("password", start, start+stop)
}

// pgpass reads the last field of host:port:database:user:password around p.
func (sc *scanner) pgpass(p int) int {
	s := sc.s
	begin := p
	for begin > 0 && p-begin < 256 && !isSpace(s[begin-1]) && s[begin-1] != '"' && s[begin-1] != '\'' {
		begin--
	}
	v := sc.plainValue(begin, query, maxJudged)
	fields := strings.SplitN(s[begin:v.end], ":", 5)
	if len(fields) < 5 || len(fields[4]) < 3 || fields[1] != "*" && !isDigits(fields[1]) || isPlaceholder(fields[4]) || strings.Contains(s[begin:v.end], "://") {
		return 0
	}
	start := v.end - len(fields[4])
	v = sc.plainValue(start, bare, maxJudged)
	return sc.addValue(password, v)
}

// echoed notes what an echo or printf earlier in the line of p hands on.
func (sc *scanner) echoed(p int) int {
	s := sc.s
	window := s[max(0, p-200):p]
	if at := strings.LastIndexByte(window, '\n'); at >= 0 {
		window = window[at+1:]
	}
	at := max(strings.LastIndex(window, "echo "), strings.LastIndex(window, "printf "), strings.LastIndex(window, "<<< ")-1)
	if at < 0 {
		return 0
	}
	q := p - len(window) + at
	q = skipBlanks(s, q+strings.IndexByte(s[q:], ' '))
	for q+2 < p && s[q] == '-' {
		q = skipBlanks(s, wordEnd(s, q))
	}
	v, ok := sc.quotedValue(q)
	if !ok {
		v = sc.plainValue(q, bare, maxJudged)
	}
	if at := strings.IndexByte(v.of(s), ':'); at >= 0 {
		v.start += at + 1
	}
	if v.end-v.start < 3 || isPlaceholder(v.of(s)) {
		return 0
	}
	sc.addValue(password, v)
	return 0
}
