package redact

import "strings"

// judge tells whether the value v, which a name of class c has in syntax x, is a secret. alone: nothing follows it in its line.
func judge(c class, v string, x syntax, quoted, alone bool) bool {
	number := c == pin || c == national || isCombination(v, false)
	if isPlaceholder(v) || !quoted && (isExpression(v) || isLiteral(v) && !number) {
		return false
	}
	sh := shapeOf(v)
	switch c {
	case password:
		return judgePassword(v, sh, x, quoted, alone)
	case token, container:
		return judgeToken(v, sh, x, quoted, alone)
	case weak:
		return judgeWeak(v, sh, x)
	case pin:
		return (isCode(v, 3, 8) || isCombination(v, true)) && (x != bare || sh.digits >= 4) && x != query
	case code:
		return x == query && sh.random(len(v), 20) && sh.symbols <= 2 // the code of OAuth
	case oneTime:
		return isCode(v, 4, 10) || sh.random(len(v), 6) && !isOrdinary(v) && x >= colon || isBase32(v, sh)
	case national:
		return isSocialSecurity(v)
	case signature:
		return (x == query || x == assign) && sh.random(len(v), 16) && sh.digits > 0
	case hashed:
		return len(v) >= 16 && (sh.hex || sh.random(len(v), 16)) && x >= colon
	}
	return false
}

func judgePassword(v string, sh shape, x syntax, quoted, alone bool) bool {
	if sh.digits == 0 && sh.symbols == 0 && sh.spaces == 0 && nameClass(v) != notSecret {
		return false // password=userPassword, password: "Password"
	}
	if !quoted && (v[0] == '/' || v[0] == '#') && isWords(v, "/#") {
		return false // PWD=/tmp, a comment
	}
	switch {
	case sh.spaces > 0:
		return quoted && (x.strong() || x == colon || x == spoken) && isPassphrase(v)
	case sh.letters() == 0 && sh.others == 0 && sh.symbols == 0:
		return sh.digits >= 6 && x >= colon || sh.digits >= 4 && (x >= assign || alone && x >= colon) && sh.joiners == 0
	case x == bare:
		return len(v) >= 6 && stands(v, sh)
	case x == flag:
		return alone && !isOneOf(fillers, v) && !isShouted(v) || stands(v, sh)
	case x.strong():
		return len(v) >= 3 && !(isFileName(v) && !quoted)
	case x == spoken:
		return quoted && len(v) >= 4 && !isOneOf(fillers, v) || stands(v, sh)
	}
	return quoted && len(v) >= 3 || stands(v, sh) || alone && len(v) >= 4 && !isOneOf(fillers, v) && sh.humps == 0 && x == colon && !isOrdinary(v)
}

func judgeToken(v string, sh shape, x syntax, quoted, alone bool) bool {
	if sh.spaces > 0 {
		return false
	}
	if sh.digits == 0 && (isWords(v, "") && sh.joiners > 0 || nameClass(v) != notSecret) {
		return false // names: db-creds, next_token
	}
	if isOrdinary(v) || isFileName(v) || isPath(v) || isResourceName(v, sh) {
		return false
	}
	if sh.letters() == 0 {
		return sh.digits >= 12 && x.strong()
	}
	switch {
	case x.strong():
		return sh.random(len(v), 6) || stands(v, sh) && sh.digits >= 2 && sh.uppers > 0 && sh.lowers > 0 && len(v) >= 8 || sh.letters() >= 16 || len(v) >= 8 && sh.symbols > 0 || quoted && sh.uppers > 0 && sh.lowers > 0 && sh.humps >= 2 && len(v) >= 8
	case x == colon && alone:
		return sh.random(len(v), 6) || sh.letters() >= 20 && sh.joiners == 0 || len(v) >= 8 && sh.symbols > 0
	case x == bare:
		return sh.random(len(v), 12) && sh.digits >= 2
	}
	return sh.random(len(v), 8) || quoted && len(v) >= 8 && sh.symbols > 0
}

// judgeWeak accepts what no identifier looks like: long, mixed, unbroken.
func judgeWeak(v string, sh shape, x syntax) bool {
	least := 20
	if x == query {
		least = 14
	}
	return (x != bare || sh.uppers > 2 && sh.digits > 1 && sh.joiners == 0) && x != cell && sh.random(len(v), least) && sh.joiners <= 2 && !isPath(v) && !isOrdinary(v) &&
		(sh.uppers > 0 && sh.lowers > 0 && sh.digits > 0 || x == query) && !sh.hex && !isFileName(v)
}

// stands tells whether a word of prose cannot be an ordinary word, so that it stands as a secret by itself.
func stands(v string, sh shape) bool {
	if len(v) < 4 || isOrdinary(v) || isReference(v) {
		return false
	}
	if sh.digits > 0 && (sh.letters() > 0 || sh.others > 0 || sh.symbols > 0) {
		return true
	}
	inner := strings.Trim(v, "!?\"')(*")
	if symbols := shapeOf(inner).symbols; symbols > 0 && sh.letters() >= 3 {
		return !isWords(inner, "&+~=()[]*\"`")
	}
	if v[len(v)-1] == '!' && sh.humps > 0 {
		return true
	}
	return sh.joiners == 0 && (sh.humps >= 2 || sh.uppers >= 3 && sh.lowers >= 2 && len(v) >= 8 && (sh.humps > 0 || sh.uppers >= 5)) || strings.Count(v, "-") >= 3 && isWords(v, "")
}

// isResourceName recognises the names that clusters and clouds give: small letters and digits in pieces, db-creds-01.
func isResourceName(v string, sh shape) bool {
	if sh.uppers > 0 || sh.symbols > 0 || sh.joiners == 0 || len(v) > 64 || isUUID(v) {
		return false
	}
	for piece := range strings.FieldsFuncSeq(v, func(r rune) bool { return strings.ContainsRune("-_./:", r) }) {
		p := shapeOf(piece)
		if p.turns >= 2 && len(piece) >= 8 || p.digits >= 4 && p.letters() >= 2 {
			return false
		}
	}
	return true
}

// isUUID tells whether v has the form 8-4-4-4-12 of hexadecimal digits.
func isUUID(v string) bool {
	if len(v) != 36 {
		return false
	}
	for i := range len(v) {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (v[i] == '-') || !dash && !isHex(v[i]) {
			return false
		}
	}
	return true
}

// isCode tells whether v is a code to type in: from least to most digits, with at most a capital, # or * and dashes among them.
func isCode(v string, least, most int) bool {
	digits, others := 0, 0
	for i := range len(v) {
		switch c := v[i]; {
		case isDigit(c):
			digits++
		case isUpper(c):
			others++
		case strings.IndexByte("#*- ", c) < 0:
			return false
		}
	}
	return digits >= least && digits <= most && others <= digits && (!isMeasure(strings.Trim(v, "#*"+digitsOnly)) || isCombination(v, false))
}

// isCombination tells whether v is three numbers of a lock: 38-12-77. dated allows
// those that may be a date.
func isCombination(v string, dated bool) bool {
	first, rest, _ := strings.Cut(v, "-")
	second, third, _ := strings.Cut(rest, "-")
	for _, n := range []string{first, second, third} {
		if n == "" || len(n) > 2 || !isDigits(n) {
			return false
		}
	}
	return dated || len(first) == 2 && first > "31" || len(second) == 2 && second > "31"
}

// isSocialSecurity tells whether v has the form of the number of a person in the
// United States: nine digits, 3-2-4.
func isSocialSecurity(v string) bool {
	if len(v) == 11 {
		joint := v[3]
		return (joint == '-' || joint == ' ') && v[6] == joint && isDigits(v[:3]+v[4:6]+v[7:])
	}
	return len(v) == 9 && isDigits(v)
}

const digitsOnly = "0123456789 "

// isBase32 tells whether v is the seed of a one-time password.
func isBase32(v string, sh shape) bool {
	return len(v) >= 16 && sh.lowers == 0 && sh.joiners == 0 && sh.symbols <= 2 && sh.letters() >= 8 && sh.distinct >= 6
}

// isShouted tells whether v is an ALL_CAPS word, as manuals write what is to be filled in.
func isShouted(v string) bool {
	sh := shapeOf(v)
	return sh.lowers == 0 && sh.digits == 0 && sh.symbols == 0 && sh.uppers > 0
}

// isPassphrase tells whether the quoted text v, which has spaces, is a secret and no sentence.
func isPassphrase(v string) bool {
	if len(v) > 128 {
		return shapeOf(v).spaces < 4
	}
	words, plain, odd, strange := 0, 0, false, false
	for w := range strings.FieldsSeq(v) {
		words++
		if strings.HasPrefix(w, "<") || strings.Contains(w, "://") {
			return false
		}
		if isOneOf(fillers, strings.Trim(w, ".,:;!?()'\"")) {
			plain++
		}
		sh := shapeOf(w)
		odd = odd || sh.digits > 0 && sh.letters() > 0 && !isOrdinary(w) || sh.symbols > 0 && sh.letters() > 0 && !isWords(w, "!?&+")
		strange = strange || sh.uppers > 0
	}
	if plain >= 2 || plain == 1 && words < 4 {
		return false
	}
	return odd || words >= 4 && !strange
}

// fillers are words that make a sentence: what stands with them, or is one, was not written as a secret.
var fillers = setOf(`
	a an the is are was were be been being am must may might can could should shall will would have has had do does did not no never always
	and or but if then else when where which who whom whose that this these those it its they them their we our you your he she his her i me my
	to of in on at by for from with without into onto about as than too very so such only just also again now here there please enter type
	choose select set reset change changed changing update updated use used using need needs needed require required requires forgot forgotten
	remember know knows known ask asked tell told give gave given send sent share shared stored saved kept keep found lost stolen leaked
	characters character letters letter digits digit symbols words word long short least most minimum maximum at_least between
	wrong right correct incorrect valid invalid expired empty missing blank weak strong secure insecure unsafe safe public private mandatory
	optional case-sensitive sensitive unknown unset default hidden visible encrypted hashed salted plain random unique different same new old
	stale outdated compromised rotated revoked disabled enabled locked unlocked protected available unavailable needed ready done ok fine good bad
	easy hard simple complex complicated difficult impossible ridiculous terrible great terrible important secret option flag argument parameter
	instead deprecated ignored supported unsupported accepted rejected denied allowed forbidden checked verified confirmed matched mismatched
	bitte dein deine ihr ihre gib geben eingeben
	nicht kein keine ist sind war wird werden muss soll kann falsch richtig abgelaufen erforderlich geändert vergessen
	le la les un une des est sont était pas ne doit incorrect oublié requis expiré changé el los las una es son era no debe incorrecta olvidado
	il lo gli una è sono non deve sbagliata scaduta o os uma não deve incorreta de het een niet moet verkeerd verlopen jest nie musi
	options flags parameters args arguments values value field fields prompt entry dialog manager
	somewhere nowhere everywhere anywhere something nothing anything everything yours mine ours already still yet soon later today tomorrow yesterday
	being called named written printed shown displayed visible below above inside outside next previous following first second last every each any
	all both either neither none some many few more less other another got gets get set's it's that's there's what what's why how because since`)
