package redact

import "strings"

// setting is a phrase of a configuration or programming language right before a secret.
type setting int

const (
	setNext     setting = iota // the next word or string
	setSecond                  // the second string of a call
	setBy                      // the string after the next "by"
	setWifi                    // the field P of a Wi-Fi address
	setLine                    // the last of five fields with colons between them
	setEcho                    // the word that an echo before hands on
	setUser                    // the word after the next
	setKeys                    // the private members of a JSON Web Key
	setAny                     // any string of a call that stands as a secret
	setBefore                  // the password before the @ of a data source
	setProven                  // the code that is to be typed in to prove something
	setLast                    // the last argument of htpasswd -b
	setSlash                   // the password of user/password@host
	setSQL                     // the next string, in a statement about users
	setPair                    // the password of the next string, user:password
	setHere                    // the word after the <<< of a shell
	setMail                    // the word after an address of mail
	setSend                    // what a script types at a prompt for a password
	setOne                     // what is said of the new one, a password having been spoken of
	setAccount                 // the word after the next, no option
	setMailPair                // the word after an address of mail and a stroke
)

var settings = map[string]setting{
	"identified by": setSQL, "identified with": setBy, "convertto-securestring": setNext, "snmp-server community": setNext,
	"snmp community": setNext, "vault login": setNext, "enable secret": setNext, "encrypted password": setNext, "--from-literal=password": setNext,
	"password(": setNext, "with password": setNext, "password '": setNext,
	"-passin pass:": setNext, "-passout pass:": setNext, "rclone obscure": setNext, "wandb login": setNext, "auth plain ": setNext, "auth login ": setNext,
	"basicauth(": setSecond, "basic_auth=(": setSecond, "auth=(": setSecond, "auth = (": setSecond, "networkcredential(": setSecond, "basic_auth(": setSecond,
	"basiccredentials(": setSecond, ".login(": setSecond, "passwordauthentication(": setSecond, "usernamepasswordcredentials(": setSecond, "authenticate(": setSecond,
	"credentials(": setSecond, "plainauth(": setSecond, "auth=[": setSecond, "auth: [": setSecond,
	"wifi:": setWifi, ":5432:": setLine, ":*:": setLine, ":3306:": setLine, ":5433:": setLine, ":6432:": setLine,
	".connect(": setAny, "jwt.sign(": setAny, "jwt.verify(": setAny, "hmac.new(": setAny, "createhmac(": setAny, ".client(": setAny,
	"htpasswd -": setLast, ":thin:": setSlash, "sqlplus ": setSlash, "sqlplus -s ": setSlash,
	"@tcp(": setBefore, "@unix(": setBefore, " to verify": setProven, " to sign in": setProven, " to log in": setProven, " to confirm": setProven,
	"<auth-user-pass>": setUser, "/user:": setUser, "::add-mask::": setNext, "\"kty\"": setKeys,
	"btoa(": setPair, "b64encode(b": setPair, "b64encode(": setPair, "vncpasswd": setHere, "passwd --stdin": setHere, "smbpasswd": setHere,
	"new one": setOne, "old one": setOne, "neues": setOne, "net user ": setAccount, " / ": setMailPair, "ldapmodify": setHere, "ldapsearch": setHere, "cryptsetup": setHere,
	"login ": setMail, "send \"": setSend, "send '": setSend,
	"--password-stdin": setEcho, "sudo -s": setEcho, "chpasswd": setEcho, "--with-token": setEcho,
}

// settingAt reads the secret after the setting s[start:end].
func (sc *scanner) settingAt(kind setting, start, end int) int {
	s := sc.s
	switch kind {
	case setNext:
		if strings.HasSuffix(s[start:end], "(") && start >= 4 && strings.EqualFold(s[start-4:start], "user") {
			return sc.secondString(end) // UserPassword("jo", "x")
		}
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
	case setSQL:
		if before := s[max(0, start-judgedBody):start]; containsAny(before, [][]byte{[]byte("user"), []byte("grant"), []byte("role")}) {
			return sc.nextString(end)
		}
	case setPair:
		if v, ok := sc.quotedValue(skipBlanks(s, end)); ok {
			if at := strings.IndexByte(v.of(s), ':'); at > 0 && v.end-v.start-at > 3 && !isPlaceholder(v.of(s)[at+1:]) && !strings.Contains(v.of(s), "://") {
				v.start += at + 1
				return sc.addValue(password, v)
			}
		}
	case setHere:
		if at := strings.Index(s[end:sc.lineEnd(end)], "<<<"); at >= 0 {
			return sc.nextString(end + at + len("<<<"))
		}
	case setMail:
		word := wordEnd(s, end)
		if at := strings.IndexByte(s[end:word], '@'); at > 0 && strings.IndexByte(s[end+at:word], '.') > 0 {
			return sc.take(password, skipBlanks(s, word), bare)
		}
	case setOne:
		if !spokenOf(s[max(0, start-96):start]) {
			return 0
		}
		p := skipBlanks(s, end)
		if at, x := operator(s, p, false); x == colon {
			return sc.take(password, skipBlanks(s, at), spoken)
		}
		return sc.speech(password, end)
	case setAccount:
		p := skipBlanks(s, wordEnd(s, end))
		if word := s[p:wordEnd(s, p)]; word != "" && word[0] != '/' && word != "*" && !isPlaceholder(word) {
			return sc.take(password, p, flag)
		}
	case setMailPair:
		word := s[wordBefore(s, start):start]
		if at := strings.IndexByte(word, '@'); at > 0 && strings.IndexByte(word[at:], '.') > 0 {
			return sc.take(password, end, bare)
		}
	case setSend:
		if strings.Contains(strings.ToLower(s[max(0, start-96):start]), "assword") {
			return sc.sent(end - 1)
		}
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

// spokenOf tells whether a text speaks of a password or its like.
func spokenOf(text string) bool {
	for word := range strings.FieldsSeq(text) {
		if c := nameClass(strings.Trim(word, ".,;:!?()\"'")); c == password || c == token || c == pin {
			return true
		}
	}
	return false
}

// sent notes the string at p without the return that ends what is typed.
func (sc *scanner) sent(p int) int {
	v, ok := sc.quotedValue(p)
	if !ok {
		return 0
	}
	text := v.of(sc.s)
	for _, key := range []string{`\r`, `\n`, "\r", "\n", `\`} {
		text = strings.TrimSuffix(text, key)
	}
	if v.end = v.start + len(text); len(text) < 3 || isPlaceholder(text) {
		return 0
	}
	return sc.addValue(password, v)
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
		if v.end-v.start >= 3 && judge(password, v.of(s), assign, true, true) && !isOneOf(fillers, v.of(s)) {
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
