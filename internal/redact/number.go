package redact

// cardAt reads the number of a payment card that begins at the digit i: groups of digits with a blank or dash between them,
// a known issuer, and the check digit of ISO/IEC 7812 (Luhn). It answers the end of the number, or 0.
func cardAt(s string, i int) int {
	var number [20]byte
	n, p, end := 0, i, i
	for p < len(s) && n < len(number) {
		switch c := s[p]; {
		case isDigit(c):
			number[n] = c - '0'
			n++
			p++
			end = p
			continue
		case (c == ' ' || c == '-') && p > i && isDigit(s[p-1]) && p+1 < len(s) && isDigit(s[p+1]) && n >= 4:
			p++
			continue
		}
		break
	}
	if end < len(s) && (isAlnum(s[end]) || s[end] == '_') || !isIssuer(number[:n]) || !luhn(number[:n]) || distinctDigits(number[:n]) < 2 {
		return 0
	}
	return end
}

// afterCard notes the check value that stands behind a card's number and its date:
// 08/29, 771.
func (sc *scanner) afterCard(p int) {
	s := sc.s
	gap := func() {
		for limit := p + 12; p < len(s) && p < limit && !isDigit(s[p]) && s[p] != '\n'; {
			p++
		}
	}
	gap()
	month := run(s, p, charsDigit, 3)
	if month-p != 2 || month >= len(s) || s[month] != '/' {
		return
	}
	year := run(s, month+1, charsDigit, 5)
	if n := year - month - 1; n != 2 && n != 4 {
		return
	}
	p = year
	gap()
	if end := run(s, p, charsDigit, 5); p > year && (end-p == 3 || end-p == 4) && (end == len(s) || !isAlnum(s[end])) {
		sc.add("cvv", p, end)
	}
}

var charsDigit = newCharset(digits)

// isIssuer tells whether a number has the length and the first digits of a network of cards.
func isIssuer(n []byte) bool {
	if len(n) < 14 {
		return false
	}
	two := int(n[0])*10 + int(n[1])
	four := two*100 + int(n[2])*10 + int(n[3])
	switch len(n) {
	case 16:
		return n[0] == 4 || two >= 51 && two <= 55 || four >= 2221 && four <= 2720 || four == 6011 || two == 65 || four >= 3528 && four <= 3589 || two == 62
	case 15:
		return two == 34 || two == 37
	case 14:
		return two == 36 || two == 38 || two == 30
	}
	return false
}

func luhn(n []byte) bool {
	sum := 0
	for i, d := range n {
		v := int(d)
		if (len(n)-i)%2 == 0 {
			if v *= 2; v > 9 {
				v -= 9
			}
		}
		sum += v
	}
	return sum%10 == 0
}

func distinctDigits(n []byte) int {
	seen, count := [10]bool{}, 0
	for _, d := range n {
		if !seen[d] {
			seen[d] = true
			count++
		}
	}
	return count
}

// countries are those with account numbers of ISO 13616.
var countries = setOf(`AD AE AL AT AZ BA BE BG BH BI BR BY CH CR CY CZ DE DJ DK DO EE EG ES FI FK FO FR GB GE GI GL GR GT HN HR HU IE IL IQ IS IT
	JO KW KZ LB LC LI LT LU LV LY MC MD ME MK MN MR MT MU NI NL NO OM PK PL PS PT QA RO RS RU SA SC SD SE SI SK SM SO ST SV TL TN TR UA VA VG XK YE`)

// ibanAt reads an account number (ISO 13616) whose two check digits begin at i, after the two letters of the country.
// It answers where the number begins and ends; the end is 0 if there is none.
func ibanAt(s string, i int) (int, int) {
	if i < 2 || !isUpper(s[i-1]) || !isUpper(s[i-2]) || i > 2 && isAlnum(s[i-3]) || i+1 >= len(s) || !isDigit(s[i+1]) || !countries[s[i-2:i]] {
		return 0, 0
	}
	start := i - 2
	rest, p, end := 0, start, start // of the number so far, its first four characters moved to the end
	length := 0
	var chars [34]byte
	for p < len(s) && length < len(chars) {
		c := s[p]
		if isDigit(c) || isUpper(c) {
			chars[length] = c
			length++
			p++
			end = p
			continue
		}
		if (c == ' ' || c == '-') && p+1 < len(s) && (isDigit(s[p+1]) || isUpper(s[p+1])) && length%4 == 0 {
			p++
			continue
		}
		break
	}
	for ; length >= 15; length-- {
		rest = 0
		for k := range length {
			rest = mod97(rest, chars[(k+4)%length])
		}
		if rest == 1 && (end >= len(s) || !isAlnum(s[end])) {
			return start, end
		}
		for end--; end > start && s[end-1] == ' '; end-- {
		}
		if s[end-1] != ' ' && end < len(s) && isAlnum(s[end]) && end > 0 {
			// only a word boundary may end the number
			continue
		}
	}
	return 0, 0
}

// mod97 appends one character of an account number, letters counting from 10 on, to a remainder.
func mod97(rest int, c byte) int {
	if isDigit(c) {
		return (rest*10 + int(c-'0')) % 97
	}
	return (rest*100 + int(c-'A') + 10) % 97
}
