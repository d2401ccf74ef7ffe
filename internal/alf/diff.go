package alf

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// Move is a memory that is known under another id since its section, or its
// file, stands elsewhere.
type Move struct {
	FromID   uuid.UUID `json:"from_id"`
	ToID     uuid.UUID `json:"to_id"`
	FromFile string    `json:"from_file"`
	ToFile   string    `json:"to_file"`
	Title    string    `json:"title"`
}

// Ref names a record to a person.
type Ref struct {
	ID    uuid.UUID `json:"id"`
	File  string    `json:"file,omitempty"`
	Title string    `json:"title"` // its first line, short
}

// FileChange is a file that is not the same in two archives.
type FileChange struct {
	Name    string `json:"name"` // the entry's name
	Kind    string `json:"kind"` // added, changed or removed
	OldSize int64  `json:"old_size"`
	NewSize int64  `json:"new_size"`
}

// Difference is what leads from one archive to another. Added, Edited, Removed
// and Moved tell it as a person would: a section that stands elsewhere is a
// move, not an edit. Operations are what a delta carries, since ids go by
// position.
type Difference struct {
	Added      []Ref          `json:"added"`
	Edited     []Ref          `json:"edited"`
	Removed    []Ref          `json:"removed"`
	Moved      []Move         `json:"moved"`
	Touched    int            `json:"touched"` // records whose times or lines changed and nothing else
	Files      []FileChange   `json:"files"`
	Layers     []string       `json:"layers"`     // of identity, principals, credentials, attachments
	Operations map[string]int `json:"operations"` // create, update, delete

	created, updated, deleted map[uuid.UUID]bool
	oldSums, newSums          sums
}

// Empty reports whether there is nothing to tell but touched files.
func (d *Difference) Empty() bool {
	return len(d.created)+len(d.updated)+len(d.deleted)+len(d.Files)+len(d.Layers) == 0
}

// known is what Compare remembers of a record.
type known struct {
	ref     Ref
	exact   [sha256.Size]byte // of all of it
	same    [sha256.Size]byte // of all that counts
	content [sha256.Size]byte
}

func know(r *Record) (known, error) {
	text, err := r.comparable()
	if err != nil {
		return known{}, err
	}
	same := sha256.Sum256(text)
	rest := append(same[:], r.Temporal.CreatedAt.String()+r.Temporal.UpdatedAt.String()+string(r.RawSourceFormat)...)
	return known{
		ref: Ref{r.ID, r.Source.OriginFile, Title(r.Content)}, exact: sha256.Sum256(rest),
		same: same, content: sha256.Sum256([]byte(strings.TrimRight(r.Content, "\r\n \t"))),
	}, nil
}

// Title returns the first line of a text that says something, without heading
// marks, cut to 80 characters.
func Title(content string) string {
	for l := range strings.Lines(content) {
		if l = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(l), "#")); l == "" {
			continue
		}
		if runes := []rune(l); len(runes) > 80 {
			return string(runes[:79]) + "…"
		}
		return l
	}
	return ""
}

// Compare finds what leads from old to new.
func Compare(old, new *Reader) (*Difference, error) {
	d := &Difference{
		Added: []Ref{}, Edited: []Ref{}, Removed: []Ref{}, Moved: []Move{}, Files: []FileChange{}, Layers: []string{}, Operations: map[string]int{},
		created: map[uuid.UUID]bool{}, updated: map[uuid.UUID]bool{}, deleted: map[uuid.UUID]bool{},
	}
	if err := d.compareRecords(old, new); err != nil {
		return nil, err
	}
	if err := d.compareLayers(old, new); err != nil {
		return nil, err
	}
	return d, d.compareFiles(old, new)
}

func (d *Difference) compareRecords(old, new *Reader) error {
	before := map[uuid.UUID]known{}
	var oldOrder []uuid.UUID
	for r, err := range old.Records() {
		if err != nil {
			return err
		}
		k, err := know(r)
		if err != nil {
			return err
		}
		if _, twice := before[r.ID]; !twice {
			oldOrder = append(oldOrder, r.ID)
		}
		before[r.ID] = k
	}
	seen := make(map[uuid.UUID]bool, len(before))
	var arrived []known // created or updated, in the new order
	for r, err := range new.Records() {
		if err != nil {
			return err
		}
		k, err := know(r)
		if err != nil {
			return err
		}
		was, there := before[r.ID]
		seen[r.ID] = true
		switch {
		case !there:
			d.created[r.ID] = true
			arrived = append(arrived, k)
		case was.same != k.same:
			d.updated[r.ID] = true
			arrived = append(arrived, k)
		case was.exact != k.exact:
			d.Touched++
		}
	}
	var left []known // deleted or updated, in the old order
	for _, id := range oldOrder {
		if !seen[id] {
			d.deleted[id] = true
		}
		if !seen[id] || d.updated[id] {
			left = append(left, before[id])
		}
	}
	d.Operations[Create], d.Operations[Update], d.Operations[Delete] = len(d.created), len(d.updated), len(d.deleted)
	d.tell(left, arrived)
	return nil
}

// tell sorts what left and what arrived into moves, edits, additions and
// removals.
func (d *Difference) tell(left, arrived []known) {
	byContent := map[[sha256.Size]byte][]int{}
	for i, k := range left {
		byContent[k.content] = append(byContent[k.content], i)
	}
	gone, came := make([]bool, len(left)), make([]bool, len(arrived)) // told already
	take := func(a int, sameID bool) {
		k := arrived[a]
		for _, l := range byContent[k.content] {
			if gone[l] || (left[l].ref.ID == k.ref.ID) != sameID {
				continue
			}
			gone[l], came[a] = true, true
			if sameID {
				d.Edited = append(d.Edited, k.ref) // its tags, say, and not its words
			} else {
				d.Moved = append(d.Moved, Move{left[l].ref.ID, k.ref.ID, left[l].ref.File, k.ref.File, k.ref.Title})
			}
			return
		}
	}
	for a := range arrived {
		take(a, true)
	}
	for a := range arrived {
		if !came[a] {
			take(a, false)
		}
	}
	stays := map[uuid.UUID]bool{}
	for l, k := range left {
		stays[k.ref.ID] = !gone[l]
	}
	edited := map[uuid.UUID]bool{}
	for a, k := range arrived {
		switch {
		case came[a]:
		case stays[k.ref.ID]:
			edited[k.ref.ID] = true
			d.Edited = append(d.Edited, k.ref)
		default:
			d.Added = append(d.Added, k.ref)
		}
	}
	for l, k := range left {
		if !gone[l] && !edited[k.ref.ID] {
			d.Removed = append(d.Removed, k.ref)
		}
	}
}

// compareLayers compares what the layers say. Ids, versions and times that an
// exporter makes up at each export are no change.
func (d *Difference) compareLayers(old, new *Reader) error {
	for name, read := range map[string]func(*Reader) (any, error){
		"identity": func(r *Reader) (any, error) {
			id, err := r.Identity()
			return bareIdentity(id), err
		},
		"principals": func(r *Reader) (any, error) {
			p, err := r.Principals()
			return barePrincipals(p), err
		},
		"credentials": func(r *Reader) (any, error) {
			c, err := r.Credentials()
			return bareCredentials(c), err
		},
		"attachments": func(r *Reader) (any, error) { return r.Attachments() },
	} {
		a, err := read(old)
		if err != nil {
			return err
		}
		b, err := read(new)
		if err != nil {
			return err
		}
		same, err := equal(a, b)
		if err != nil {
			return err
		}
		if !same {
			d.Layers = append(d.Layers, name)
		}
	}
	slices.Sort(d.Layers)
	return nil
}

func equal(a, b any) (bool, error) {
	x, err := line(a)
	if err != nil {
		return false, err
	}
	y, err := line(b)
	return bytes.Equal(x, y), err
}

func bareIdentity(id *Identity) *Identity {
	if id == nil {
		return nil
	}
	c := *id
	c.ID, c.Version, c.UpdatedAt = uuid.Nil, 0, Time{}
	return &c
}

func barePrincipals(p *Principals) *Principals {
	if p == nil {
		return nil
	}
	c := *p
	c.Principals = slices.Clone(p.Principals)
	for i := range c.Principals {
		x := &c.Principals[i]
		x.ID, x.Profile.ID, x.Profile.PrincipalID, x.Profile.Version, x.Profile.UpdatedAt = uuid.Nil, uuid.Nil, uuid.Nil, 0, Time{}
	}
	return &c
}

func bareCredentials(c *Credentials) *Credentials {
	if c == nil {
		return nil
	}
	out := *c
	out.Credentials = slices.Clone(c.Credentials)
	for i := range out.Credentials {
		out.Credentials[i].ID, out.Credentials[i].CreatedAt, out.Credentials[i].UpdatedAt = uuid.Nil, Time{}, Time{}
	}
	return &out
}

// SameIdentity reports whether two identities say the same, whatever their ids,
// versions and times are.
func SameIdentity(a, b *Identity) (bool, error) { return equal(bareIdentity(a), bareIdentity(b)) }

// SamePrincipal is SameIdentity for a principal.
func SamePrincipal(a, b Principal) (bool, error) {
	return equal(barePrincipals(&Principals{Principals: List[Principal]{a}}), barePrincipals(&Principals{Principals: List[Principal]{b}}))
}

// compareFiles compares the files that are kept verbatim.
func (d *Difference) compareFiles(old, new *Reader) error {
	var err error
	if d.oldSums, err = old.fileSums(); err != nil {
		return err
	}
	if d.newSums, err = new.fileSums(); err != nil {
		return err
	}
	size := func(r *Reader, name string) int64 {
		if e := r.entries[name]; e != nil {
			return int64(e.UncompressedSize64)
		}
		return 0
	}
	names := map[string]bool{}
	for _, s := range []sums{d.oldSums, d.newSums} {
		for name := range s {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, before := d.oldSums[name]
		is, now := d.newSums[name]
		change := FileChange{Name: name, Kind: "changed", OldSize: size(old, name), NewSize: size(new, name)}
		switch {
		case before && now && was == is:
			continue
		case !before:
			change.Kind = "added"
		case !now:
			change.Kind = "removed"
		}
		d.Files = append(d.Files, change)
	}
	return nil
}

// fileSums are the sums of the files that no layer names.
func (r *Reader) fileSums() (sums, error) {
	files := maps.Clone(r.entries)
	maps.DeleteFunc(files, func(name string, _ *zip.File) bool { return r.layered(name) })
	return sumOf(files, manifestName)
}

func (s sums) hex(name string) string {
	sum, there := s[name]
	if !there {
		return ""
	}
	return hex.EncodeToString(sum[:])
}

// Text is the difference for a person.
func (d *Difference) Text() string {
	if d.Empty() {
		return fmt.Sprintf("No difference; %d records touched.\n", d.Touched)
	}
	var sb strings.Builder
	fmt.Fprintf(&sb, "%d added, %d edited, %d removed, %d moved, %d touched; %d files\n", len(d.Added), len(d.Edited), len(d.Removed), len(d.Moved), d.Touched, len(d.Files))
	for _, group := range []struct {
		mark string
		refs []Ref
	}{{"+", d.Added}, {"~", d.Edited}, {"-", d.Removed}} {
		for _, r := range group.refs {
			fmt.Fprintf(&sb, "  %s %s  %s\n", group.mark, r.File, r.Title)
		}
	}
	for _, m := range d.Moved {
		where := m.FromFile
		if m.ToFile != m.FromFile {
			where += " to " + m.ToFile
		}
		fmt.Fprintf(&sb, "  > %s  %s\n", where, m.Title)
	}
	for _, l := range d.Layers {
		fmt.Fprintf(&sb, "  ~ %s\n", l)
	}
	for _, f := range d.Files {
		fmt.Fprintf(&sb, "  %s %s (%d to %d bytes)\n", f.Kind, f.Name, f.OldSize, f.NewSize)
	}
	return sb.String()
}
