package lsa

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// A stored model, numbers with the low byte first:
//
//	"oclsa" and the version, 1 byte
//	dimensions, 2 bytes · terms, 4 · passages, 4 · hash of the corpus, 6
//	for each term, in the order of their bytes: its length, 1, and itself
//	for each term: scale, float32
//	for each term: codes, 1 byte for each dimension
//	CRC-32C of all before, 4
const (
	magic      = "oclsa"
	headerSize = len(magic) + 1 + 2 + 4 + 4 + 6
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendBinary appends the model as Read takes it: about 90 bytes a term. It never
// fails.
func (m *Model) AppendBinary(b []byte) ([]byte, error) {
	first := len(b)
	b = append(append(b, magic...), version)
	b = binary.LittleEndian.AppendUint16(b, uint16(m.dims))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m.scales)))
	b = binary.LittleEndian.AppendUint32(b, uint32(m.passages))
	b = append(b, m.hash[:]...)
	for _, name := range slices.Sorted(maps.Keys(m.terms)) { // the order of their rows
		b = append(append(b, byte(len(name))), name...)
	}
	for _, s := range m.scales {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(s))
	}
	for _, c := range m.codes {
		b = append(b, byte(c))
	}
	return appendSum(b, first), nil
}

// appendSum appends the checksum of what stands in b from first on.
func appendSum(b []byte, first int) []byte {
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[first:], castagnoli))
}

// Read returns the model that b holds. What AppendBinary has not written is of the
// kind memory.ErrCorrupt; what another version of it wrote memory.ErrConflict. A model
// can be trained again, so neither loses anything.
func Read(b []byte) (*Model, error) {
	switch {
	case len(b) < headerSize+4 || string(b[:len(magic)]) != magic:
		return nil, memory.Errorf(memory.ErrCorrupt, "this is no model of words: %d bytes that begin with %q", len(b), b[:min(len(b), len(magic))])
	case b[len(magic)] != version:
		return nil, memory.Errorf(memory.ErrConflict, "the model of words has version %d, this build reads version %d: train it again", b[len(magic)], version)
	}
	body, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return nil, damaged("its checksum is wrong")
	}
	head, rest := body[len(magic)+1:headerSize], body[headerSize:]
	dims, terms := int(binary.LittleEndian.Uint16(head)), int(binary.LittleEndian.Uint32(head[2:]))
	// A term takes 2 bytes, a scale and its codes at least, so that nothing is
	// made that is larger than what is there.
	if dims < 1 || terms < 1 || terms > len(rest)/(2+4+dims) {
		return nil, damaged("%d terms of %d dimensions do not fit into %d bytes", terms, dims, len(rest))
	}
	names, rest, err := readNames(rest, terms)
	if err != nil {
		return nil, err
	}
	if len(rest) != terms*(4+dims) {
		return nil, damaged("it has %d bytes of vectors instead of %d", len(rest), terms*(4+dims))
	}
	m := newModel(names, dims, int(binary.LittleEndian.Uint32(head[6:])), head[10:16])
	for i := range m.scales {
		s := math.Float32frombits(binary.LittleEndian.Uint32(rest[4*i:]))
		if !(s >= 0 && s <= maxScale) { // also NaN
			return nil, damaged("term %d has the scale %v", i+1, s)
		}
		m.scales[i] = s
	}
	for i, c := range rest[4*terms:] {
		m.codes[i] = int8(c)
	}
	return m, nil
}

// maxScale is far above what a model has, and far below what makes a sum infinite.
const maxScale = 1e30

// readNames reads that many terms, and returns what stands behind them.
func readNames(b []byte, count int) ([]string, []byte, error) {
	names := make([]string, count)
	in := bytes.NewReader(b)
	for i := range names {
		n, err := in.ReadByte()
		if err != nil || n == 0 {
			return nil, nil, damaged("term %d is missing", i+1)
		}
		name := make([]byte, n)
		if _, err := io.ReadFull(in, name); err != nil {
			return nil, nil, damaged("term %d is cut off", i+1)
		}
		if names[i] = string(name); i > 0 && names[i] <= names[i-1] {
			return nil, nil, damaged("term %d is out of order", i+1)
		}
	}
	return names, b[len(b)-in.Len():], nil
}

func damaged(format string, args ...any) error {
	return memory.Errorf(memory.ErrCorrupt, "the model of words is damaged: "+format, args...)
}
