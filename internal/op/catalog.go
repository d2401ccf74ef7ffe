package op

import (
	"fmt"
	"slices"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Catalog is the list of all operations, in the order of their names. Fill it
// with Add, then Freeze it; from then on it is safe for concurrent use.
type Catalog struct {
	ops    map[string]Op
	names  []string
	frozen bool
}

// Add adds operations. It panics on a name that is there already and after
// Freeze: both are defects of the wiring.
func (c *Catalog) Add(ops ...Op) {
	if c.frozen {
		panic("op: the catalog is frozen")
	}
	if c.ops == nil {
		c.ops = map[string]Op{}
	}
	for _, o := range ops {
		if _, double := c.ops[o.Name]; double {
			panic(fmt.Sprintf("op: %s is defined twice", o.Name))
		}
		c.ops[o.Name] = o
		c.names = append(c.names, o.Name)
	}
}

// Freeze ends the filling and returns c.
func (c *Catalog) Freeze() *Catalog {
	slices.Sort(c.names)
	c.frozen = true
	return c
}

// Get returns the operation of that name; ErrNotFound, with the nearest name as
// the hint, where there is none.
func (c *Catalog) Get(name string) (Op, error) {
	o, known := c.ops[name]
	if known {
		return o, nil
	}
	hint := "openclawssy --help lists them"
	if near := memory.Nearest(name, c.names); near != "" {
		hint = "did you mean " + near + "?"
	}
	return Op{}, memory.WithHint(memory.Errorf(memory.ErrNotFound, "there is no operation %q", name), hint)
}

// All returns the operations in the order of their names.
func (c *Catalog) All() []Op {
	all := make([]Op, len(c.names))
	for i, name := range c.names {
		all[i] = c.ops[name]
	}
	return all
}
