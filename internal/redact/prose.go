package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// foreignWords are names of secrets that are not written with ASCII letters alone or have several words, by class.
// Names such as senha or passwort are in names.go.
var foreignWords = map[class]string{
	password: `contraseña,mot de passe,mots de passe,palavra-passe,palavra passe,parola d'ordine,parola d’ordine,hasło,hasłem,hasła,пароль,пароля,пароли,паролем,密码,密碼,口令,
		パスワード,暗証番号,비밀번호,암호,lösenord,adgangskode,jelszó,şifre,sifre,salasana,κωδικός,كلمة المرور,كلمة السر,סיסמה,סיסמא,
		mật khẩu,kata sandi,kodeord,lozinka,лозинка,парола,geslo,parol,รหัสผ่าน,पासवर्ड,clave de acceso,code wifi,code wi-fi,code du wifi,wifi code,wi-fi code,la clave,clave del,clave wifi,
		código de acceso,codice di accesso,palabra de paso,phrase de passe,phrase secrète,passwörter,losen,cod de acces`,
	token: `ключ api,api ключ,api-ключ,токен,секретный ключ,密钥,密鑰,令牌,金鑰,apiキー,アクセストークン,トークン,秘密鍵,シークレット,api 키,토큰,비밀 키,
		api-schlüssel,api schlüssel,geheimer schlüssel,zugangsschlüssel,privater schlüssel,clé api,clé d'api,clé secrète,clave api,clave secreta,
		chave api,chave de api,chave da api,chave secreta,chiave api,chiave segreta,jeton,api-sleutel,klucz api,jeton d'accès,clave de api,llave api`,
	oneTime: `код подтверждения,код из смс,одноразовый код,验证码,驗證碼,校验码,動態密碼,認証コード,確認コード,ワンタイム,인증번호,código de verificación,
		código de verificação,code de vérification,code de sécurité,bestätigungscode,codice di verifica,verificatiecode,kod weryfikacyjny,kod sms,
		codigo de verificacion,freischaltcode,einmalpasswort,einmalcode,sicherheitscode,code de confirmation,code secret,door code,gate code,
		safe opens,lock opens,locker opens,padlock opens,alarm code,türcode,haustürcode,zugangscode,toegangscode,código de la puerta,code d'entrée,digicode,código do portão,kod do drzwi,
		codice del cancello,codice della porta,door pin,keypad code,lockbox code,safe combination,garage code,safe code,building code,entry code`,
	national: `social security number,social security no,social security #`,
	pin:      `suitcase lock,bike lock,luggage lock,padlock is,geheimzahl,пин-код,пин код,пинкод,pin码,código pin,code pin,codice pin,pincode,kod pin,ピン,código secreto,kontonummer-pin,pin-code`,
}

const (
	seedWords = `seed phrase,recovery phrase,mnemonic,backup phrase,secret phrase,recovery words,seed words,wallet phrase,wallet words,backup words,
12 words,24 words,twelve words,seed is,wallet seed,recovery seed,frase semilla,frase de recuperación,frase di recupero,frase de recuperação,
phrase de récupération,phrase de récup,wiederherstellungsphrase,wiederherstellungswörter,wiederherstellungssatz,frase seed,herstelzin,
fraza odzyskiwania,助记词,助記詞,恢复短语,リカバリーフレーズ,ニーモニック,シードフレーズ,복구 문구,니모닉,сид-фраза,сид фраза,мнемоническая фраза,
фраза восстановления,seed:,frase mnemónica,phrase mnémonique,mots de récupération,seedphrase`
	loginWords = `log in with,log in as,login with,login as,logged in with,logging in with,sign in with,sign in as,signed in with,anmelden mit,
zugangsdaten,anmeldedaten,logindaten,identifiants,identifiant,credenciales,credenziali,credenciais,inloggegevens,dane logowania,учетные данные,
connexion avec,логин,authenticate as,authenticate with,einloggen mit,账号,帳號,アカウント,user/pass,username/password,user/password,login/password,
basic auth,accès,acceso con,connect as,auth with,ssh in as,inloggen met,entrar com,accedi con,login details`
)

// connectors are the words that may stand right before a secret: the password is X, was changed to X, lautet X.
var connectors = setOf(`
	is was be are to = : equals ist lautet lautete war auf zu es era será est était sera à é è era był jest brzmi to är er on это будет as
	bleibt wurde sarà sia olet este este: becomes became used using use with ->
	para a à → e' es: c'est cest becoming is: lautet: named called being following`)

// links are the words that may stand between a name and its connector: the password for the router is X.
var links = setOf(`
	for of on in at from that which you we i he she they now here still again today currently just changed reset set should will has had have
	für fürs vom von zum zur im am der die das des den dem meines meiner unseres hier
	para de del da do das dos di della delle dei per pour du la le les au aux en el los las mi meu mio mon ma votre
	voor van het mijn naar do dla od na w для к от на в моего к: is was be are to ( my our your the this his her - – — account accounts itself
	again, must ought can protecting went goes moved got gets mudou mudado cambió cambiado changé passé cambiata cambiato`)

// aims are connectors that lead to much else than a secret, which must therefore stand by itself.
var aims = setOf(`to be on as auf zu with using in para a à`)

// nextStands tells whether the word after p, pauses apart, cannot be an ordinary one.
func nextStands(s string, p int) bool {
	for range 4 {
		p = skipBlanks(s, p)
		end := wordEnd(s, p)
		word := strings.Trim(s[p:end], "\"'`“”«»,.()*")
		if word == "" {
			return false
		}
		if stands(word, shapeOf(word)) || isCode(word, 4, 10) {
			return true
		}
		if !isOneOf(pauses, word) {
			return false
		}
		p = end
	}
	return false
}

// pauses are words that may stand between a connector and the secret.
var pauses = setOf(`
	now still currently just set changed reset actually simply called literally probably going to be the following as updated
	jetzt nun aktuell noch immer wie folgt ahora maintenant adesso agora nu teraz теперь : = - – — "is" following: follows: this: now:
	always temporarily again same again: been`)

// speech reads what a sentence says about a name that ends at p: "... for the router is X". It answers 0 if it gives nothing away.
func (sc *scanner) speech(c class, p int) int {
	s := sc.s
	cyrillic := p >= 2 && s[p-2] >= 0xD0 && s[p-2] <= 0xD3 // languages that leave out "is"
	if p < len(s) && !isBlank(s[p]) && s[p] != ',' {
		if closing, quoted := closers(s, p); quoted || closing == p || closing >= len(s) || !isBlank(s[closing]) {
			return 0
		} else {
			p = closing
		}
	}
	if q := skipBlanks(s, p); q < len(s) && q > p && s[q] == '(' && (c == password || c == token) {
		return sc.noted(c, q+1)
	}
	near, after := false, false // a lock was named; a pause stands before the word
	found := 0                  // where what the name had before ends: changed from X to Y
	for words := 0; words < 12; words++ {
		p = skipBlanks(s, p)
		end := wordEnd(s, p)
		if end == p {
			return found
		}
		word := strings.TrimRight(s[p:end], ",")
		if word == "" {
			p = end
			continue
		}
		isConnector := isOneOf(connectors, strings.TrimRight(word, ":"))
		if words == 0 && !isConnector && !isOneOf(links, word) && word[0] != '(' {
			return 0
		}
		if c == code && isOneOf(locks, word) {
			near = true
		}
		if c == password && isOneOf(sources, word) && nextStands(s, end) {
			if at := sc.spokenValue(c, end); at > 0 {
				found, p = at, at
				continue
			}
		}
		if asked := strings.TrimSuffix(word, "?"); asked != word && c == password && after && stands(asked, shapeOf(asked)) {
			return sc.take(c, p, spoken)
		}
		after = isOneOf(pauses, word)
		if isConnector || words > 0 && (strings.HasSuffix(word, ":") || word == "=") {
			if (c != code || near) && (!isOneOf(aims, word) || nextStands(s, end)) {
				if at := sc.spokenValue(spokenClass(c), end); at > 0 {
					return at
				}
			}
		}
		if cyrillic && words > 0 && word[0] < utf8.RuneSelf && stands(word, shapeOf(word)) {
			return sc.take(c, p, spoken)
		}
		if strings.IndexByte(".!?;", s[end-1]) >= 0 {
			return found
		}
		p = end
	}
	return found
}

// sources lead to what a password was before.
var sources = setOf(`from von vom desde depuis da van`)

// noted reads the only word of a note in parentheses that begins at p: a temporary password (X).
func (sc *scanner) noted(c class, p int) int {
	s := sc.s
	v := sc.plainValue(p, bare, 128)
	text := v.of(s)
	sh := shapeOf(text)
	if v.next >= len(s) || s[v.next] != ')' || !sh.random(len(text), 8) && !(c == password && len(text) >= 8 && sh.digits > 0 && stands(text, sh)) {
		return 0
	}
	return sc.take(c, p, bare)
}

// locks are what a bare "code" opens.
var locks = setOf(`
	door gate alarm safe lock lockbox garage building entrance keypad vault locker house flat apartment office phone sim card elevator lift
	tür haustür alarmanlage tresor porte portail immeuble puerta portal porta cancello deur drzwi brama дверь двери домофон garagentor schloss
	door, gate, safe, tor keller briefkasten schließfach bike fahrradschloss suitcase`)

func spokenClass(c class) class {
	if c == code {
		return oneTime
	}
	return c
}

// wordEnd answers where the word that begins at p ends: at a blank or at the end of the line, at most 64 bytes on.
func wordEnd(s string, p int) int {
	limit := min(len(s), p+64)
	for p < limit && !isSpace(s[p]) {
		p++
	}
	return p
}

// spokenValue reads the value that follows a connector that ends at p.
func (sc *scanner) spokenValue(c class, p int) int {
	s := sc.s
	for range 4 {
		p = skipBlanks(s, p)
		end := wordEnd(s, p)
		if end == p {
			if p < len(s) && s[p] == '\n' && p > 0 && s[p-1] == ':' {
				p++
				continue
			}
			return 0
		}
		if !isOneOf(pauses, strings.TrimRight(s[p:end], ",")) {
			break
		}
		p = end
	}
	for p < len(s) && (s[p] == '*' || s[p] == '(') {
		p++
	}
	return sc.take(c, p, spoken)
}

// determiners may stand between a connector and the name after it: X is my wifi password.
var determiners = setOf(`
	my the our your his her their a an new old current wifi wi-fi admin root db database api access secret auth login master user account
	mein das unser dein meine der die neue neues mi la el nuestra tu mon le votre notre il mio minha a meu mijn het moje мой это router
	server ssh sudo email gmail github staging prod production guest temporary default initial one-time bearer private encryption signing`)

var asWords = setOf(`thats that's as is ist als como comme est es come jako jest was equals é è war`)

// backwards looks for the secret before the name s[from:to]: "X is my password", "use X as the token". It tells whether there is one.
func (sc *scanner) backwards(c class, from, to int) bool {
	s := sc.s
	if c != password && c != token && c != pin && c != oneTime || !endsPhrase(s, to) {
		return false
	}
	p := from
	for words := range 6 {
		q := p
		for q > 0 && isBlank(s[q-1]) {
			q--
		}
		begin := q
		for begin > 0 && q-begin < 64 && !isSpace(s[begin-1]) {
			begin--
		}
		word := s[begin:q]
		if word == "" || q == p && words > 0 {
			return false
		}
		if isOneOf(asWords, word) {
			if back := wordBefore(s, begin); isOneOf(pronouns, s[back:skipBack(s, begin)]) {
				begin = back
			}
			return sc.takeBefore(c, begin)
		}
		if !isOneOf(determiners, word) && c != oneTime && !(words == 0 && isWords(word, "")) {
			return false
		}
		p = begin
	}
	return false
}

// pronouns may stand between a secret and what is said about it: X, that is my password.
var pronouns = setOf(`that this which it das dies eso esto ça cela questo isso`)

// wordBefore answers where the word begins that ends before i.
func wordBefore(s string, i int) int {
	for i > 0 && isBlank(s[i-1]) {
		i--
	}
	for limit := i - 64; i > 0 && i > limit && !isSpace(s[i-1]); {
		i--
	}
	return i
}

// endsPhrase tells whether no noun follows position p, which would make the name part of another one: password manager.
func endsPhrase(s string, p int) bool {
	q := skipBlanks(s, p)
	if q >= len(s) || !isLetter(s[q]) {
		return true
	}
	next := strings.TrimRight(s[q:wordEnd(s, q)], ".,!?;:")
	return q > p && (isOneOf(links, next) || isOneOf(asides, next))
}

// asides may follow a name that ends its clause.
var asides = setOf(`below follows attached here btw fyi now please ok okay and but so too again thanks thx anyway right today then until till unless if since as everywhere there
	und aber jetzt bitte y ahora et mais e agora en nu i a`)

// takeBefore notes the word that ends before p if it is a secret.
func (sc *scanner) takeBefore(c class, p int) bool {
	s := sc.s
	for limit := p - 8; p > 0 && p > limit && (isBlank(s[p-1]) || strings.IndexByte("<-=,", s[p-1]) >= 0); {
		p--
	}
	begin := p
	for begin > 0 && p-begin < 128 && !isSpace(s[begin-1]) {
		begin--
	}
	quoted := false
	for begin < p && strings.IndexByte("\"'`(*", s[begin]) >= 0 {
		begin++
		quoted = true
	}
	end := p
	for end > begin && strings.IndexByte("\"'`)*,", s[end-1]) >= 0 {
		end--
	}
	if end-begin < 4 || !utf8.ValidString(s[begin:end]) || tagEnd(s, begin) > 0 || !judge(c, s[begin:end], spoken, quoted && c == password, true) {
		return false
	}
	sc.add(classKinds[c], begin, end)
	return true
}

// wordAt reads the value of a name in another language that stands at s[start:end].
func (sc *scanner) wordAt(c class, start, end int) int {
	s := sc.s
	if start > 0 && isLetter(s[start-1]) && isLetter(s[start]) {
		return 0
	}
	r, _ := utf8.DecodeLastRuneInString(s[start:end])
	if !spaceless(r) {
		for n := 0; end < len(s); n++ { // an inflection
			r, size := utf8.DecodeRuneInString(s[end:])
			if !unicode.IsLetter(r) {
				break
			}
			if n == 3 {
				return 0
			}
			end += size
		}
	}
	p, quoted := closers(s, end)
	p = skipNote(s, skipBlanks(s, p))
	if at, x := operator(s, p, quoted); x != noSyntax {
		return sc.take(c, sc.valueStart(at, x), x)
	}
	for _, particle := range particles {
		if at := strings.Index(s[p:min(len(s), p+48)], particle); at >= 0 && strings.IndexByte(s[p:p+at], '\n') < 0 {
			if resume := sc.take(c, skipBlanks(s, p+at+len(particle)), spoken); resume > 0 {
				return resume
			}
		}
	}
	if at := sc.answered(c, start, end); at > 0 {
		return at
	}
	if at := sc.speech(c, end); at > 0 || p >= len(s) || p == end && !spaceless(r) {
		return at
	}
	return sc.take(c, skipSpaceless(s, p), bare)
}

// skipSpaceless skips some letters of a script without spaces.
func skipSpaceless(s string, p int) int {
	for limit := p + 24; p < len(s) && p < limit; {
		r, size := utf8.DecodeRuneInString(s[p:])
		if !spaceless(r) || r < 0x3040 {
			break
		}
		p += size
	}
	return skipBlanks(s, p)
}

// particles join a name and its value in languages that set no spaces.
var particles = []string{"是：", "是:", "是", "为：", "为", "為", "はこちら", "は", "が", "는", "은", "이", "를", "を"}

// spaceless tells whether r belongs to a script that sets no spaces between words.
func spaceless(r rune) bool {
	return r >= 0x3000 && r <= 0x9FFF || r >= 0xAC00 && r <= 0xD7AF
}
