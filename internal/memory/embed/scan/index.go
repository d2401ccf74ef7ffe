package scan

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/openclawssy/openclawssy/internal/memory"
)

const (
	// FastLimit is how many bytes of codes a scan may pass over and still leave
	// most of a recall's 50 ms to others: a million vectors of 384 numbers.
	// Memory gives 10 to 20 bytes a nanosecond.
	FastLimit = 1_000_000 * 384
	// PlainLimit is the same for the kernel in plain Go, which multiplies about
	// two numbers a nanosecond and core.
	PlainLimit = FastLimit / 8
)

// blockRows is how many vectors stand together. It is the unit of work that a
// core takes: long enough that a call into C costs nothing beside it, short
// enough that cores finish together. Only the last block grows, so what is
// there is never copied as a whole.
const blockRows = 1024

// groupRows is how many vectors stand interleaved in a plane, see kernel.sift.
const groupRows = 16

// Index holds vectors of one dimension under ids. The zero value is of no use;
// see New. All methods may be called from any goroutine: searches go on beside
// each other, a change waits for those under way and is seen whole or not at all.
type Index struct {
	dim    int
	kernel kernel
	turn   turn
	free   sync.Pool // of *scratch

	mu sync.RWMutex
	rows
}

// rows are what an index holds.
type rows struct {
	blocks []*block      // all full but the last
	at     map[int64]int // id to position: block·blockRows + row
	sum    []int64       // of all vectors, see row.addTo
}

func newRows(dim int) rows { return rows{at: map[int64]int{}, sum: make([]int64, dim)} }

// block is up to blockRows rows, each of their parts beside each other.
type block struct {
	ids    []int64
	scale  []float32
	coarse []shadow
	close  []shadow
	rough  []shadow
	high   []uint8 // the upper halves of nibbles, of whole groups of rows, see kernel.sift
	low    []uint8 // and the lower ones
	loss   int64   // sum of the losses of rough
	codes  []int8
	fine   []int16
}

// New returns an empty index for vectors of dim numbers, 1 to MaxDim, with the
// fastest kernel that this build and processor have.
func New(dim int) (*Index, error) {
	return newIndex(dim, kernels()[0])
}

func newIndex(dim int, k kernel) (*Index, error) {
	if dim < 1 || dim > MaxDim {
		return nil, &memory.FieldError{Field: "dimensions", Reason: fmt.Sprintf("must be between 1 and %d, not %d", MaxDim, dim),
			Hint: "check the embedding model and its dimension"}
	}
	return &Index{dim: dim, kernel: k, turn: newTurn(padded(dim)), rows: newRows(dim)}, nil
}

// Kernel returns the name of the code that New has an index scan with, as
// Index.Kernel does.
func Kernel() string { return kernels()[0].name }

// Outgrown says whether an index of so many vectors of dim numbers is Slow,
// without one.
func Outgrown(dim, vectors int) (bool, error) {
	x, err := New(dim)
	return err == nil && vectors > x.slowAbove(), err
}

// Dim returns how many numbers a vector has.
func (x *Index) Dim() int { return x.dim }

// Kernel returns the name of the code that scans: "c-avx512vnni", "c-avx2", "c",
// "go-avx2" or "go".
func (x *Index) Kernel() string { return x.kernel.name }

// Len returns how many vectors there are.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.at)
}

// IDs returns the ids of all vectors, in ascending order.
func (x *Index) IDs() []int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.Sorted(maps.Keys(x.at))
}

// Slow says that the index has outgrown a scan: it still finds the nearest
// vectors, but leaves less than half of the time that a recall has.
func (x *Index) Slow() bool { return x.Len() > x.slowAbove() }

// slowAbove returns how many vectors a scan can pass over within its limit.
func (x *Index) slowAbove() int {
	if x.kernel.fast {
		return FastLimit / padded(x.dim)
	}
	return PlainLimit / padded(x.dim)
}

// Bytes returns how much memory the vectors take, without the map of ids: three
// and a half bytes a number and 36 a vector, and what the last block has in reserve.
func (x *Index) Bytes() int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var n int64
	for _, b := range x.blocks {
		n += int64(8*cap(b.ids) + 4*cap(b.scale) + 8*cap(b.coarse) + 8*cap(b.close) + 8*cap(b.rough) + cap(b.high) + cap(b.low) + cap(b.codes) + 2*cap(b.fine))
	}
	return n
}

// Set stores the vector under the id, in place of what was there. It keeps its
// direction only, and no reference to the slice. A vector that does not pass
// Check is refused and changes nothing.
func (x *Index) Set(id int64, vector []float32) error {
	r := newRow(x.dim)
	if err := r.set(vector, x.turn); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.put(id, r)
	return nil
}

// Delete removes the vector of the id and says whether there was one.
func (x *Index) Delete(id int64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	pos, known := x.at[id]
	if !known {
		return false
	}
	// The last one takes its place.
	x.row(pos).addTo(x.sum, -1)
	r := newRow(x.dim)
	end := len(x.blocks) - 1
	last := x.blocks[end]
	i := len(last.ids) - 1
	moved := last.ids[i]
	x.blocks[pos/blockRows].set(pos%blockRows, moved, last.row(i, x.dim, r.nibble))
	x.at[moved] = pos
	delete(x.at, id)
	last.truncate(i, x.dim)
	if i == 0 {
		x.blocks[end] = nil
		x.blocks = x.blocks[:end]
	}
	return true
}

// Load replaces everything in the index by what each hands to put, one call a
// vector; a later vector of the same id replaces the earlier. The slice may be
// used again after put. Searches see what was there before until each is done.
// When put or each fails, Load returns that error and the index stays as it was.
func (x *Index) Load(each func(put func(id int64, vector []float32) error) error) error {
	loaded := newRows(x.dim)
	r := newRow(x.dim)
	err := each(func(id int64, vector []float32) error {
		if err := r.set(vector, x.turn); err != nil {
			return fmt.Errorf("vector %d: %w", id, err)
		}
		loaded.put(id, r)
		return nil
	})
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.rows = loaded
	return nil
}

// Vector returns the vector of the id, scaled to length one, and whether there
// is one. The slice belongs to the caller.
func (x *Index) Vector(id int64) ([]float32, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	pos, known := x.at[id]
	if !known {
		return nil, false
	}
	return x.row(pos).vector(), true
}

// row returns the row at the position, without its nibbles; it shares the block's
// memory.
func (x *Index) row(pos int) row { return x.blocks[pos/blockRows].row(pos%blockRows, x.dim, nil) }

// put copies the row into the blocks, where at says or at the end.
func (x *rows) put(id int64, r row) {
	r.addTo(x.sum, 1)
	if pos, known := x.at[id]; known {
		b := x.blocks[pos/blockRows]
		b.row(pos%blockRows, len(x.sum), nil).addTo(x.sum, -1)
		b.set(pos%blockRows, id, r)
		return
	}
	if len(x.blocks) == 0 || len(x.blocks[len(x.blocks)-1].ids) == blockRows {
		x.blocks = append(x.blocks, &block{})
	}
	end := len(x.blocks) - 1
	b := x.blocks[end]
	x.at[id] = end*blockRows + len(b.ids)
	b.append(id, r, end > 0)
}

// append adds a row. A block that follows another makes room for all its rows at
// once; the first starts small, as many agents have few vectors.
func (b *block) append(id int64, r row, whole bool) {
	if len(b.ids) == cap(b.ids) {
		room := min(blockRows, max(groupRows, 2*len(b.ids)))
		if whole {
			room = blockRows
		}
		b.ids = grown(b.ids, room)
		b.scale = grown(b.scale, room)
		b.coarse = grown(b.coarse, room)
		b.close = grown(b.close, room)
		b.rough = grown(b.rough, room)
		b.high = grown(b.high, room*len(r.nibble)/4)
		b.low = grown(b.low, room*len(r.nibble)/4)
		b.codes = grown(b.codes, room*len(r.codes))
		b.fine = grown(b.fine, room*len(r.fine))
	}
	b.ids = append(b.ids, id)
	b.scale = append(b.scale, r.scale)
	b.coarse = append(b.coarse, r.coarse)
	b.close = append(b.close, r.close)
	b.rough = append(b.rough, r.rough)
	b.loss += r.rough.loss()
	if i := len(b.ids) - 1; i%groupRows == 0 {
		size := (i + groupRows) * len(r.nibble) / 4
		b.high, b.low = b.high[:size], b.low[:size]
	}
	pack(b.high, b.low, len(b.ids)-1, r.nibble)
	b.codes = append(b.codes, r.codes...)
	b.fine = append(b.fine, r.fine...)
}

// grown returns a copy with exactly this capacity.
func grown[T any](s []T, capacity int) []T {
	return append(make([]T, 0, capacity), s...)
}

// row returns row i; it shares the block's memory, but for the nibbles, which are
// copied to nibble unless it is nil.
func (b *block) row(i, dim int, nibble []uint8) row {
	width := padded(dim)
	if nibble != nil {
		unpack(nibble, b.high, b.low, i)
	}
	return row{scale: b.scale[i], rough: b.rough[i], coarse: b.coarse[i], close: b.close[i], nibble: nibble,
		codes: b.codes[i*width : (i+1)*width], fine: b.fine[i*dim : (i+1)*dim]}
}

// set overwrites row i.
func (b *block) set(i int, id int64, r row) {
	b.loss += r.rough.loss() - b.rough[i].loss()
	b.ids[i], b.scale[i], b.rough[i], b.coarse[i], b.close[i] = id, r.scale, r.rough, r.coarse, r.close
	pack(b.high, b.low, i, r.nibble)
	copy(b.codes[i*len(r.codes):], r.codes)
	copy(b.fine[i*len(r.fine):], r.fine)
}

// truncate leaves the first n rows, and nothing of the others in memory.
func (b *block) truncate(n, dim int) {
	width := padded(dim)
	for _, s := range b.rough[n:] {
		b.loss -= s.loss()
	}
	clear(b.ids[n:])
	clear(b.rough[n:])
	clear(b.coarse[n:])
	clear(b.close[n:])
	clear(b.codes[n*width:])
	clear(b.fine[n*dim:])
	none := make([]uint8, width)
	for i := n; i < len(b.ids); i++ {
		pack(b.high, b.low, i, none)
	}
	b.ids, b.scale, b.rough, b.coarse, b.close = b.ids[:n], b.scale[:n], b.rough[:n], b.coarse[:n], b.close[:n]
	size := (n + groupRows - 1) / groupRows * groupRows * width / 4
	b.high, b.low = b.high[:size], b.low[:size]
	b.codes, b.fine = b.codes[:n*width], b.fine[:n*dim]
}

// pack writes the nibbles of row i, their upper two bits into one plane and the lower
// two into the other. In each, 16 rows stand in 4·len(nibble) bytes: 64 bytes for 16
// numbers of each, of which a row has four, number j beside j+4, j+8 and j+12. So a
// processor works on 16 rows at once, each in its own lane.
func pack(high, low []uint8, i int, nibble []uint8) {
	at := i/groupRows*groupRows*len(nibble)/4 + i%groupRows*4
	for j := 0; j < len(nibble); j += 16 {
		for k := range 4 {
			var h, l uint8
			for bits := range 4 {
				c := nibble[j+k+4*bits]
				h |= c >> 2 << (2 * bits)
				l |= c & 3 << (2 * bits)
			}
			high[at+k], low[at+k] = h, l
		}
		at += 4 * groupRows
	}
}

// unpack reads what pack wrote.
func unpack(nibble, high, low []uint8, i int) {
	at := i/groupRows*groupRows*len(nibble)/4 + i%groupRows*4
	for j := 0; j < len(nibble); j += 16 {
		for k := range 4 {
			for bits := range 4 {
				nibble[j+k+4*bits] = high[at+k]>>(2*bits)&3<<2 | low[at+k]>>(2*bits)&3
			}
		}
		at += 4 * groupRows
	}
}
