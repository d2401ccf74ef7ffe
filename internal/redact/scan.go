package redact

import (
	"slices"
	"strings"
)

// maxDepth is how many layers of encoding are taken off.
const maxDepth = 2

// scanner holds the state of one pass over one text.
type scanner struct {
	s     string
	depth int // layers of encoding that may still be taken off
	r     *Redactor
	found []Finding

	named      int // end of the last name that was looked at
	commands   int // commands (bits of commandBits) that the current line began with
	commandEnd int // end of that line
	keysEnd    int // end of the last JSON Web Key
	noJWT      int // no JSON Web Token begins before this, but those that were found
	searches   [searchable]search
	encoded    int // first byte of an escape, -1 if none was seen
}

// search remembers where a byte was found, so that looking for it again and again costs linear time in all.
type search struct{ from, at int }

const (
	searchNewline = iota
	searchDouble
	searchSingle
	searchBacktick
	searchable
)

var searchBytes = [searchable]byte{'\n', '"', '\'', '`'}

// nextOf answers the first position from i on of one of searchBytes, or the length of the text.
func (sc *scanner) nextOf(which, i int) int {
	known := &sc.searches[which]
	if known.at > 0 && known.from <= i && i <= known.at {
		return known.at
	}
	at, until := len(sc.s), len(sc.s)
	if known.at > 0 && i < known.from {
		at, until = known.at, known.from
	}
	if i < until {
		if d := strings.IndexByte(sc.s[i:until], searchBytes[which]); d >= 0 {
			at = i + d
		}
	}
	*known = search{from: i, at: at}
	return at
}

// lineEnd answers where the line of i ends.
func (sc *scanner) lineEnd(i int) int { return sc.nextOf(searchNewline, i) }

// scan returns the findings of s, unsorted.
func (r *Redactor) scan(s string, depth int) []Finding {
	sc := scanner{s: s, depth: depth, r: r, named: -1, encoded: -1}
	sc.match(r.rules)
	if r.known != nil {
		sc.match(r.known)
	}
	sc.runs()
	if sc.encoded >= 0 && depth > 0 {
		sc.views()
	}
	return sc.found
}

// match runs the automaton over the text and calls the readers where patterns end.
func (sc *scanner) match(a *automaton) {
	s := sc.s
	state := uint32(0)
	for i := 0; i < len(s); i++ {
		next := a.next[state<<classBits|uint32(a.class[s[i]])]
		state = uint32(next & stateMask)
		if next&acceptFlag == 0 {
			continue
		}
		for _, id := range a.hits[state] {
			p := &a.patterns[id]
			if resume := sc.read(p, i+1-len(p.text), i+1); resume > i {
				i, state = resume-1, 0
				break
			}
		}
	}
}

// read looks at the pattern p that stands at s[start:end]. It answers where to go on, or 0.
func (sc *scanner) read(p *pattern, start, end int) int {
	switch p.act {
	case actTag:
		return tagEnd(sc.s, start)
	case actVendor:
		if f, ok := sc.vendorAt(p.arg, start); ok {
			return sc.add(f.Kind, f.Start, f.End)
		}
	case actName:
		return sc.nameAt(start, end)
	case actWord:
		return sc.wordAt(class(p.arg), start, end)
	case actSeed:
		return sc.seedAt(end)
	case actArmor:
		return sc.armorAt(start)
	case actURL:
		return sc.userinfoAt(start)
	case actJWT:
		return sc.jwtAt(start)
	case actHash:
		return sc.hashAt(start, end)
	case actScheme:
		return sc.schemeAt(start, end)
	case actLogin:
		return sc.loginAt(start, end)
	case actCommand:
		return sc.commandAt(p.arg, start, end)
	case actFlag:
		return sc.flagAt(p.arg, start, end)
	case actSetting:
		return sc.settingAt(setting(p.arg), start, end)
	case actKnown:
		return sc.add("known", start, end)
	}
	return 0
}

// add notes a finding and answers where to go on.
func (sc *scanner) add(kind string, start, end int) int {
	sc.found = append(sc.found, Finding{Kind: kind, Start: start, End: end})
	return end
}

// rulePatterns lists everything that the automaton of a Redactor looks for.
func rulePatterns() []pattern {
	patterns := []pattern{{text: strings.ToLower(tagOpen), act: actTag}}
	for row, v := range vendors {
		patterns = append(patterns, pattern{text: strings.ToLower(v.prefix), act: actVendor, arg: row})
	}
	for _, part := range strings.Fields(nameParts) {
		patterns = append(patterns, pattern{text: part, act: actName})
	}
	for c, words := range foreignWords {
		for word := range strings.SplitSeq(words, ",") {
			patterns = append(patterns, spellings(word, pattern{act: actWord, arg: int(c)})...)
		}
	}
	for word := range strings.SplitSeq(seedWords, ",") {
		patterns = append(patterns, spellings(word, pattern{act: actSeed})...)
	}
	for word := range strings.SplitSeq(loginWords, ",") {
		patterns = append(patterns, spellings(word, pattern{act: actLogin})...)
	}
	for _, prefix := range hashPrefixes {
		patterns = append(patterns, pattern{text: strings.ToLower(prefix), act: actHash})
	}
	for text, kind := range settings {
		patterns = append(patterns, pattern{text: text, act: actSetting, arg: int(kind)})
	}
	patterns = append(patterns,
		pattern{text: "-----begin ", act: actArmor}, pattern{text: "---- begin ", act: actArmor}, pattern{text: "private-lines:", act: actArmor},
		pattern{text: "://", act: actURL}, pattern{text: "eyj", act: actJWT},
		pattern{text: "bearer ", act: actScheme}, pattern{text: "basic ", act: actScheme})
	patterns = append(patterns, commandPatterns()...)
	slices.SortFunc(patterns, func(a, b pattern) int { return strings.Compare(a.text, b.text) })
	return patterns
}

// nameParts are in every name of a secret that names.go knows; where one stands the whole name is read.
const nameParts = `pass pwd pw token secret key cred kennwort auth psk pin puk otp ssn cvv cvc csc jwt cookie sig mnemonic code codes creds
	contrasena mdp haslo heslo senha wachtwoord salt hmac cert login sessid sessionid signature mfa 2fa tan sas bearer pepper connectionstring clave appid adgangskode
	connection hash phrase seed words pw answer digest logins pswd sha256 md5 motdepasse parola passord`
