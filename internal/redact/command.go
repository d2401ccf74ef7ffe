package redact

import "strings"

// commandBits tell apart the commands whose short flags take a password.
const (
	takesP        = 1 << iota // -p x
	takesGluedP               // -px
	takesUserPass             // -u user:x
	takesA                    // -a x
	takesW                    // -w x
	takesCapitalP             // -P x
	takesPercent              // -U user%x
	takesSlashP               // /p:x
	takesT                    // -t x
	takesK                    // -k x
	takesC                    // -c x
	takesSlashRP              // /rp x
)

// commandFlags gives the flags of each command.
var commandFlags = map[string]int{
	"mysql": takesGluedP, "mysqldump": takesGluedP, "mysqladmin": takesGluedP, "mariadb": takesGluedP, "mysqlimport": takesGluedP, "mariadb-dump": takesGluedP,
	"sshpass": takesP | takesGluedP, "docker login": takesP, "podman login": takesP, "helm registry login": takesP, "skopeo login": takesP, "az login": takesP,
	"mongo": takesP, "mongosh": takesP, "mongodump": takesP, "twine": takesP, "psexec": takesP, "influx": takesP, "cqlsh": takesP, "hydra": takesP,
	"crackmapexec": takesP, "kinit": takesP, "oc login": takesP, "rabbitmqadmin": takesP, "sqlcmd": takesCapitalP, "bcp": takesCapitalP, "clickhouse": takesP, "ftp": takesP,
	"curl": takesUserPass, "wget": takesUserPass, "http": takesA | takesUserPass, "xh": takesA, "redis-cli": takesA, "ldapsearch": takesW, "ldapadd": takesW, "ldapmodify": takesW,
	"ldapwhoami": takesW, "smbclient": takesPercent, "rpcclient": takesPercent, "zip": takesCapitalP, "unzip": takesCapitalP, "7z": takesGluedP, "isql": takesCapitalP,
	"xfreerdp": takesSlashP, "mstsc": takesSlashP, "rar": takesGluedP, "mosquitto_pub": takesCapitalP, "mosquitto_sub": takesCapitalP, "wkhtmltopdf": takesP,
	"doctl": takesT, "restic": takesP, "nmcli": takesP, "ipmitool": takesCapitalP, "snmpwalk": takesA | takesC, "openssl enc": takesK, "ansible-vault": takesP, "impacket": takesP,
	"htpasswd": takesP, "etcdctl": takesUserPass, "gh auth": takesT, "netexec": takesP, "winexe": takesPercent, "evil-winrm": takesP,
	"schtasks": takesSlashRP, "useradd": takesP, "usermod": takesP, "snmpget": takesA | takesC, "snmpbulkwalk": takesA | takesC, "snmpset": takesA | takesC,
}

// flagCommands gives the commands' bits that each flag belongs to.
var flagCommands = []struct {
	text string
	bits int
}{
	{" -p ", takesP}, {" -p", takesGluedP}, {" -u ", takesUserPass}, {" --user ", takesUserPass}, {" --user=", takesUserPass}, {" -a ", takesA}, {" -w ", takesW},
	{" -p ", takesCapitalP}, {" -u ", takesPercent}, {" /p:", takesSlashP}, {" -t ", takesT}, {" -k ", takesK}, {" --proxy-user ", takesUserPass}, {" --auth ", takesA},
	{" -u", takesUserPass}, {" -c ", takesC}, {" /rp ", takesSlashRP},
}

func commandPatterns() []pattern {
	var patterns []pattern
	for name, bits := range commandFlags {
		patterns = append(patterns, pattern{text: name, act: actCommand, arg: bits})
	}
	for row, f := range flagCommands {
		patterns = append(patterns, pattern{text: f.text, act: actFlag, arg: row})
	}
	return patterns
}

// commandAt notes that the command s[start:end] stands in this line.
func (sc *scanner) commandAt(bits, start, end int) int {
	if end < len(sc.s) && (isBlank(sc.s[end]) || sc.s[end] == '.') && (start == 0 || !isAlnum(sc.s[start-1]) && sc.s[start-1] != '-') {
		if start >= sc.commandEnd {
			sc.commands = 0
		}
		sc.commands |= bits
		sc.commandEnd = sc.lineEnd(end)
		if sc.commandEnd < len(sc.s) && sc.s[sc.commandEnd-1] == '\\' {
			sc.commandEnd = sc.lineEnd(sc.commandEnd + 1) // a continued line
		}
	}
	return 0
}

// flagAt reads what follows the flag flagCommands[row] at s[start:end], if a command that has it stands in this line.
func (sc *scanner) flagAt(row, start, end int) int {
	s := sc.s
	f := flagCommands[row]
	if start >= sc.commandEnd || sc.commands&f.bits == 0 || (f.bits == takesCapitalP || f.bits == takesPercent) != isUpper(s[start+2]) && f.bits != takesSlashP {
		return 0
	}
	if f.bits == takesGluedP && end < len(s) && (isBlank(s[end]) || isLower(s[end]) && strings.HasPrefix(s[end:], "ort")) {
		return 0
	}
	v, ok := sc.quotedValue(skipBlanks(s, end))
	if !ok {
		v = sc.plainValue(skipBlanks(s, end), bare, maxJudged)
	}
	mark := byte(0)
	switch f.bits {
	case takesUserPass, takesA:
		mark = ':'
	case takesPercent:
		mark = '%'
	}
	if mark != 0 {
		at := strings.IndexByte(v.of(s), mark)
		if at < 0 && f.bits != takesA {
			return 0
		}
		v.start += at + 1
	}
	text := v.of(s)
	if len(text) < 3 || text[0] == '-' || isPlaceholder(text) || isDigits(text) && len(text) < 6 || isMapping(text) || strings.HasPrefix(text, "@") {
		return 0
	}
	return sc.addValue(password, v)
}

// isMapping tells whether v maps ports, as in -p 8080:80, or names a folder.
func isMapping(v string) bool {
	for i := range len(v) {
		if !isDigit(v[i]) && strings.IndexByte(":./-", v[i]) < 0 {
			return strings.HasPrefix(v, "/") || strings.HasPrefix(v, "./")
		}
	}
	return strings.IndexByte(v, ':') > 0
}
