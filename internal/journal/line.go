package journal

import (
	"bytes"
	"hash/crc32"
	"strconv"
)

// MaxLine is the most bytes that a line may have, its newline included.
const MaxLine = 8 << 20

// maxSeal is the most bytes that sealing adds to an object.
const maxSeal = len(`,"seq":9223372036854775807`) + sealLength + 1

// MaxObject is the most bytes that an object may have before it is sealed.
const MaxObject = MaxLine - maxSeal

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// The end of a line: sealStart, 8 hex digits, sealEnd.
const (
	sealStart  = `,"crc":"`
	sealEnd    = `"}`
	sealLength = len(sealStart) + 8 + len(sealEnd)
	seqName    = `"seq":`
	hexDigits  = "0123456789abcdef"
)

// appendSealed appends to dst the line made of a JSON object, its seq and its
// checksum, with the newline.
func appendSealed(dst, object []byte, seq int64) []byte {
	start := len(dst)
	dst = append(dst, object[:len(object)-1]...)
	if len(object) > len("{}") {
		dst = append(dst, ',')
	}
	dst = append(dst, seqName...)
	dst = strconv.AppendInt(dst, seq, 10)
	sum := crc32.Checksum(dst[start:], castagnoli)
	dst = append(dst, sealStart...)
	dst = appendSum(dst, sum)
	return append(dst, sealEnd+"\n"...)
}

func appendSum(dst []byte, sum uint32) []byte {
	for shift := 28; shift >= 0; shift -= 4 {
		dst = append(dst, hexDigits[sum>>shift&15])
	}
	return dst
}

// unseal returns the seq of a line (without its newline), or why it is not one
// that a journal wrote.
func unseal(line []byte) (seq int64, reason string) {
	body := len(line) - sealLength
	if body < 0 || !sealAt(line, body) {
		return 0, "the line has no checksum at its end"
	}
	var sum [8]byte
	if string(appendSum(sum[:0], crc32.Checksum(line[:body], castagnoli))) != string(line[body+len(sealStart):body+len(sealStart)+8]) {
		return 0, "the checksum does not match"
	}
	seq, found := trailingSeq(line[:body])
	if !found {
		return 0, "the line has no seq"
	}
	return seq, ""
}

// sealAt reports whether b has the form of a line's end at i.
func sealAt(b []byte, i int) bool {
	if i+sealLength > len(b) || string(b[i:i+len(sealStart)]) != sealStart || string(b[i+sealLength-len(sealEnd):i+sealLength]) != sealEnd {
		return false
	}
	for _, c := range b[i+len(sealStart) : i+len(sealStart)+8] {
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f') {
			return false
		}
	}
	return true
}

// trailingSeq reads the seq member that ends body: digits, and before them the
// member's name.
func trailingSeq(body []byte) (int64, bool) {
	digits := len(body)
	for digits > 0 && '0' <= body[digits-1] && body[digits-1] <= '9' {
		digits--
	}
	before, named := bytes.CutSuffix(body[:digits], []byte(seqName))
	if !named || len(before) == 0 || (before[len(before)-1] != ',' && before[len(before)-1] != '{') {
		return 0, false
	}
	seq, err := strconv.ParseInt(string(body[digits:]), 10, 64)
	return seq, err == nil && seq > 0 && body[digits] != '0'
}
