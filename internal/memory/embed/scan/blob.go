package scan

import (
	"encoding/binary"
	"math"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// AppendFloats appends the vector as a store keeps it: 4 bytes a number, float32
// with the low byte first, nothing before or after.
func AppendFloats(blob []byte, vector []float32) []byte {
	for _, v := range vector {
		blob = binary.LittleEndian.AppendUint32(blob, math.Float32bits(v))
	}
	return blob
}

// Floats reads what AppendFloats wrote into dst, which is grown as needed and
// may be nil. A blob that is no vector (empty, a length that is not a multiple
// of four, a number that is not finite) is an error of the kind memory.ErrCorrupt.
func Floats(dst []float32, blob []byte) ([]float32, error) {
	if len(blob) == 0 || len(blob)%4 != 0 {
		return nil, memory.Errorf(memory.ErrCorrupt, "a stored vector has %d bytes, which is no whole number of float32", len(blob))
	}
	dst = dst[:0]
	for i := 0; i < len(blob); i += 4 {
		v := math.Float32frombits(binary.LittleEndian.Uint32(blob[i:]))
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, memory.Errorf(memory.ErrCorrupt, "a stored vector has %v at position %d", f, i/4)
		}
		dst = append(dst, v)
	}
	return dst, nil
}

// AppendCode appends the vector in its short form, a quarter of AppendFloats:
// the scale as float32 with the low byte first, then one signed byte a number,
// -127 to 127. Number i of the vector, scaled to length one, is about
// scale·byte[i], within half of the scale. The vector has to pass Check with its
// own dimension.
func AppendCode(blob []byte, vector []float32) ([]byte, error) {
	r := newRow(len(vector))
	if err := r.set(vector, newTurn(len(r.codes))); err != nil {
		return blob, err
	}
	blob = binary.LittleEndian.AppendUint32(blob, math.Float32bits(r.scale))
	for _, c := range r.codes[:len(vector)] {
		blob = append(blob, byte(c))
	}
	return blob, nil
}

// Code reads what AppendCode wrote into dst, which is grown as needed and may be
// nil. The vector has a length of about one. A blob that AppendCode cannot have
// written is an error of the kind memory.ErrCorrupt.
func Code(dst []float32, blob []byte) ([]float32, error) {
	const head = 4
	if len(blob) <= head {
		return nil, memory.Errorf(memory.ErrCorrupt, "a stored short vector has %d bytes, at least %d are needed", len(blob), head+1)
	}
	scale := math.Float32frombits(binary.LittleEndian.Uint32(blob))
	if !(scale > 0 && scale <= 1) { // also NaN
		return nil, memory.Errorf(memory.ErrCorrupt, "a stored short vector has the scale %v, which is not above 0 and at most 1", scale)
	}
	dst = dst[:0]
	whole := false
	for i, b := range blob[head:] {
		c := int8(b)
		if c == math.MinInt8 {
			return nil, memory.Errorf(memory.ErrCorrupt, "a stored short vector has -128 at position %d", i)
		}
		whole = whole || c == codeMax || c == -codeMax
		dst = append(dst, scale*float32(c))
	}
	if !whole {
		return nil, memory.Errorf(memory.ErrCorrupt, "a stored short vector does not use its scale: no number is 127 or -127")
	}
	return dst, nil
}
