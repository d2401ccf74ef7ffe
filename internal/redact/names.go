package redact

import "strings"

// class says what a name calls its value.
type class uint8

const (
	notSecret  class = iota
	password         // chosen by a person: any value counts
	token            // made by a machine: the value must look so
	weak             // may be a secret: only an unmistakable value counts
	pin              // digits
	code             // digits; secret only with words around it that say so
	authHeader       // Authorization and its like: a scheme, then the credential
	cookie           // the Cookie and Set-Cookie headers
	signature        // the proof in a signed address
	login            // names a user and a password together
	hashed           // the hash of a password
	oneTime          // one-time and backup codes, letters and digits
	seedPhrase       // twelve or more words
	container        // holds secrets and other things
	national         // the number of a person with the state
)

// classKinds are the kinds that tags and findings show.
var classKinds = map[class]string{
	password: "password", token: "token", weak: "key", pin: "pin", code: "code", authHeader: "authorization", cookie: "cookie",
	signature: "signature", login: "password", hashed: "hash", oneTime: "otp", seedPhrase: "seed_phrase", container: "secret", national: "ssn",
}

// vocabulary is a list of names of one class.
type vocabulary struct {
	class class
	names string
}

// nameWords gives the class of a name by its last word.
var nameWords = []vocabulary{
	{password, `password passwd pwd pw pass passphrase passcode passwort kennwort psk pswd passw pword passwrd
		contraseña пароль 密码 密碼 パスワード 비밀번호 contrasena senha wachtwoord motdepasse mdp haslo hasło heslo clave parola passord lösenord adgangskode
		passwords pwds pws sudopass dbpass userpass rootpass adminpass mypass keypass storepass requirepass masterauth ftppass smtppass
		mailpass mysqlpass pgpass sshpass httppass ldappass authpass bindpw rootpw adminpw dbpw userpw bindpasswd wifipass wlanpass
		wpapsk presharedkey`},
	{token, `token secret apikey authkey accesskey secretkey privatekey privkey encryptionkey signingkey masterkey sharedkey
		accountkey clientsecret appsecret appkey accesstoken authtoken refreshtoken idtoken jwt bearer credential
		sharedaccesskey sharedsecret apisecret apitoken secrets pepper sessiontoken sessionkey servicekey licensekey licencekey
		connectionstring appid jsessionid phpsessid sessid sessionid aspsessionid xapikey subscriptionkey hmackey deploykey`},
	{weak, `key salt auth cert hmac`},
	{pin, `pin puk cvv cvc cvv2 cvc2 csc`},
	{code, `code codes`},
	{national, `ssn`},
	{oneTime, `otp totp tan mfa 2fa`},
	{authHeader, `authorization`},
	{cookie, `cookie cookies`},
	{signature, `sig signature sas`},
	{login, `credentials creds login logins`},
	{seedPhrase, `mnemonic`},
}

// namePairs gives the class of a name by its last two words, before nameWords is asked.
var namePairs = []vocabulary{
	{token, `api key,access key,secret key,private key,auth key,account key,master key,encryption key,signing key,shared key,
		service key,license key,licence key,app key,application key,client key,consumer key,session key,storage key,
		subscription key,webhook key,write key,admin key,root key,hmac key,aes key,jwt key,cookie key,deploy key,ingest key,
		integration key,routing key,crypt key,cipher key,decryption key,recovery key,unlock key,product key,activation key,
		auth secret,setup key,server key,functions key,function key,host secret,priv key,vpn key,wep key,radius key,
		connection string,key data,secret access,secret base,license code,activation code,personal token,
		api keys,secret keys,private keys,access keys,read key,authentication key,team key,project key,user key,org key,
		signing secret,unseal key,bot key,developer key,dev key,push key,vapid key,nonce key,secure key,in key,secret id`},
	{password, `pass phrase,pass code,pass word,shared passphrase,pre shared,preshared key,wifi key,wpa key,wlan key,network key,wi fi,
		security answer,master pass,key pass,store pass,network security`},
	{pin, `security code,card code,pin code,card verification`},
	{oneTime, `backup codes,backup code,recovery codes,recovery code,rescue code,scratch codes,otp code,totp code,2fa code,mfa code,fa code,tan code,
		your code,my code,use code,enter code,type code,verification code,authentication code,auth code,login code,sms code,one-time code,time code,confirmation code,
		access code,entry code,unlock code,reset code,signin code,security codes,pairing code,authenticator code,factor code,fa backup,time password,time pin`},
	{seedPhrase, `seed phrase,recovery phrase,mnemonic phrase,backup phrase,secret phrase,recovery words,seed words,wallet seed,wallet phrase`},
	{hashed, `password hash,passwd hash,password sha,password md,pass sha,password digest,password sha1,password sha256,password sha512,password md5,pw hash,pwd hash,nt hash,ntlm hash,
		pass hash,lm hash,hashed password,encrypted password,crypted password`},
	{weak, `account id`},
	{notSecret, `palabra clave,palabras clave,public key,primary key,foreign key,sort key,partition key,cache key,idempotency key,row key,object key,s3 key,lookup key,
		dedup key,dedupe key,site key,publishable key,pub key,hot key,short key,hash key,map key,json key,dict key,translation key,message key,
		host key,key key,group key,order key,index key,composite key,candidate key,surrogate key,natural key,unique key,grouping key,
		page token,pages token,next token,continuation token,pagination token,sync token,pad token,eos token,bos token,unk token,cls token,sep token,
		mask token,stop token,special token,start token,end token,max token,num token,prompt token,completion token,total token,
		per token,input token,output token,cached token,cache token,reasoning token,first token,last token,next_page token,syntax token,
		csrf cookie,no secret,no password,no token,open secret,trade secret,design token,color token,colour token,cursor token,
		image token,text token,audio token,current token,each token,nft token,erc20 token,lock token,cancellation token,cancel token,
		hash pass,by pass,low pass,high pass,band pass,boarding pass,season pass,day pass,ski pass,bus pass,test pass,first pass,second pass,one pass,
		two pass,single pass,multi pass,final pass,render pass,mountain pass,last pass,
		status code,error code,exit code,source code,zip code,country code,postal code,area code,response code,return code,http code,
		qr code,bar code,language code,currency code,promo code,product code,discount code,voucher code,booking code`},
}

var (
	wordClasses = classesOf(nameWords, wordNames)
	pairClasses = classesOf(namePairs, pairNames)
)

// wordNames splits a list of words.
func wordNames(list string) []string { return strings.Fields(list) }

// pairNames splits a list of names of two words, set apart by commas.
func pairNames(list string) []string {
	var names []string
	for pair := range strings.SplitSeq(list, ",") {
		names = append(names, strings.Join(strings.Fields(pair), " "))
	}
	return names
}

func classesOf(vocabularies []vocabulary, split func(string) []string) map[string]class {
	classes := make(map[string]class)
	for _, v := range vocabularies {
		for _, name := range split(v.names) {
			classes[name] = v.class
		}
	}
	return classes
}

// trailing are words after which the name before them still counts: DB_PASSWORD_PROD, tokenValue, password2, password_plain.
var trailing = setOf(`
	prod production dev staging stage test qa live value val text plain plaintext new old current previous prev b64 base64 base encoded str
	string raw env main primary secondary backup default tmp temp v1 v2 v3 0 1 2 3 4 5 6 7 8 9 01 02 03 confirmation confirm again repeat
	field input data local eu us header literal sandbox a b x`)

const maxName = 96

// name is a name in words: lower case, one space between words. It lies in a fixed buffer, so that reading one costs no allocation.
type name struct {
	buf    [maxName]byte
	length int
	words  [24]int // where each word begins
	count  int
}

func (n *name) word(i int) []byte {
	end := n.length
	if i+1 < n.count {
		end = n.words[i+1] - 1
	}
	return n.buf[n.words[i]:end]
}

// tail answers the last words from the i-th to the one before the end-th, with single spaces between them.
func (n *name) tail(i, end int) []byte {
	stop := n.length
	if end < n.count {
		stop = n.words[end] - 1
	}
	return n.buf[n.words[i]:stop]
}

// add splits text at joints and humps and adds its words.
func (n *name) add(text string) {
	inWord := false
	for i := range len(text) {
		c := text[i]
		if c < 128 && !isAlnum(c) {
			inWord = false
			continue
		}
		hump := isUpper(c) && inWord && (!isUpper(text[i-1]) || i+1 < len(text) && isLower(text[i+1]))
		joint := inWord && isDigit(c) != isDigit(text[i-1]) && c < 128 && text[i-1] < 128
		if !inWord || hump || joint {
			if n.count == len(n.words) || n.length+1 >= maxName {
				return
			}
			if n.length > 0 {
				n.buf[n.length] = ' '
				n.length++
			}
			n.words[n.count] = n.length
			n.count++
		}
		if n.length == maxName {
			return
		}
		n.buf[n.length] = lower(c)
		n.length++
		inWord = true
	}
}

// class answers what the name calls its value.
func (n *name) class() class {
	end := n.count
	for end > 0 {
		if c, known := n.ending(end); known {
			return c
		}
		if end == 1 || !trailing[string(n.word(end-1))] && !isNumber(n.word(end-1)) {
			return notSecret
		}
		end--
	}
	return notSecret
}

// ending answers the class of the name by the words before the end-th.
func (n *name) ending(end int) (class, bool) {
	if end >= 2 {
		if c, known := pairClasses[string(n.tail(end-2, end))]; known {
			return c, true
		}
	}
	if c, known := wordClasses[string(n.word(end-1))]; known {
		return c, true
	}
	return gluedClass(n.word(end - 1))
}

// glued are endings of words that count even without a joint before them: PGPASSWORD, dbpassword, myapikey.
var glued = []struct {
	ending string
	class  class
}{
	{"password", password}, {"passwd", password}, {"passphrase", password}, {"passwort", password}, {"kennwort", password},
	{"passwords", password}, {"passcode", password}, {"apikey", token}, {"secretkey", token}, {"accesskey", token}, {"authkey", token},
	{"privatekey", token}, {"authtoken", token}, {"accesstoken", token}, {"apitoken", token}, {"clientsecret", token}, {"appsecret", token},
	{"storepass", password}, {"keypass", password}, {"dbpass", password}, {"userpass", password}, {"adminpass", password}, {"rootpass", password},
	{"mailpass", password}, {"smtppass", password}, {"ftppass", password}, {"sudopass", password}, {"becomepass", password}, {"newpass", password},
	{"encryptionkey", token}, {"token", token}, {"secret", token}, {"pwd", password}, {"accountkey", token},
}

func gluedClass(word []byte) (class, bool) {
	for _, g := range glued {
		if at := len(word) - len(g.ending); at > 0 && string(word[at:]) == g.ending {
			return g.class, true
		}
	}
	return notSecret, false
}

func isNumber(word []byte) bool {
	for _, c := range word {
		if !isDigit(c) {
			return false
		}
	}
	return true
}

// nameClass answers the class of a name that stands alone, such as the key of a map.
func nameClass(text string) class {
	var n name
	n.add(text[:min(len(text), maxName)])
	return n.class()
}
