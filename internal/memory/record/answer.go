package record

// The answers of the contract's verbs. Stats are those of the Adapter that
// answers; an operation has none.

// PutAnswer is the answer of put.
type PutAnswer struct {
	OK        bool   `json:"ok"`
	Created   bool   `json:"created"`
	UpdatedAt string `json:"updated_at"`
	Stats     *Stats `json:"stats,omitempty"`
}

// AppendAnswer is the answer of append.
type AppendAnswer struct {
	OK        bool   `json:"ok"`
	UpdatedAt string `json:"updated_at"`
	Stats     *Stats `json:"stats,omitempty"`
}

// ListAnswer is the answer of list. More is set where the limit left records out.
type ListAnswer struct {
	Items []Entry `json:"items"`
	More  bool    `json:"more,omitempty"`
	Stats *Stats  `json:"stats,omitempty"`
}

// DeleteAnswer is the answer of delete.
type DeleteAnswer struct {
	OK      bool   `json:"ok"`
	Deleted bool   `json:"deleted"`
	Stats   *Stats `json:"stats,omitempty"`
}

// PruneAnswer is the answer of prune.
type PruneAnswer struct {
	OK     bool   `json:"ok"`
	Pruned int64  `json:"pruned"`
	Stats  *Stats `json:"stats,omitempty"`
}

// PatternAnswer is the answer of store_pattern.
type PatternAnswer struct {
	OK          bool   `json:"ok"`
	Name        string `json:"name"`
	ContentHash string `json:"content_hash"`
	UpdatedAt   string `json:"updated_at"`
	Stats       *Stats `json:"stats,omitempty"`
}
