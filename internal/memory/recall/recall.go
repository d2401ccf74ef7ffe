// Package recall finds what an agent's memory holds about a question: passages
// of the archive and items of the working store, scored in one frame, packed
// under a budget into one block of lines that is safe to put into a prompt.
package recall

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/archive"
	"github.com/openclawssy/openclawssy/internal/memory/text"
	"github.com/openclawssy/openclawssy/internal/memory/working"
)

// redactor takes secrets out of a text.
type redactor interface {
	Text(string) string
}

// Settings are what can be configured of recall, per agent.
type Settings struct {
	Tokens          int           // cap of a block, in tokens of 4 bytes, frame included
	MaxLines        int           // memory lines in a block at most; 0 for no cap of their own
	MinImportance   int           // items below are never injected
	Threshold       float64       // abstain below; 0 for the fitted one, negative for never
	Deadline        time.Duration // of a block; 0 for none
	Hops            int           // steps in the graph from what the question names; 0 for none
	PrivateInGroups bool          // group sessions may see what was said in private ones
}

// Options are what a Service is made of.
type Options struct {
	Archive memory.Borrow[*archive.Store] // for reading
	Items   memory.Borrow[*working.Store] // for reading; nil for none
	Sources []Source                      // of more items
	Near    Near                          // asked where Settings.Hops is set; nil for none
	Meaning Meaning                       // nil for words alone
	// Warm loads what Meaning needs, so that no block's deadline has to cover it; nil
	// for nothing. What goes wrong there Meaning says again.
	Warm func(context.Context, memory.AgentID)
	// Rerank returns an agent's reranker; nil, or a nil answer, for none.
	Rerank func(memory.AgentID) Reranker
	Redact redactor
	// Settings are those of an agent.
	Settings func(memory.AgentID) Settings
	// SessionKind is memory.SessionMain or memory.SessionGroup; any other answer
	// stands for a private session.
	SessionKind func(agent memory.AgentID, session string) string
	// Health says what is known to be wrong with an agent's memory and since when;
	// "" for nothing. It is asked for each block, and may be nil.
	Health func(memory.AgentID) string
	Now    func() time.Time
}

// Source finds what else an agent knows about a question, as active items, at
// most limit of them. What came from private conversations it leaves out.
type Source func(ctx context.Context, agent memory.AgentID, q text.Query, limit int) ([]memory.Item, error)

// Near finds the items of the working store that are at most so many hops in the
// graph away from what a question names: how near, 0 to 1, by the item's id, at
// most limit of them.
type Near func(ctx context.Context, agent memory.AgentID, q text.Query, hops, limit int) (map[string]float64, error)

// Service recalls for all agents. It is safe for concurrent use.
type Service struct {
	opts Options
	// building has a place for each block that is made at the same time: others wait
	// for their turn, within their deadline, so that however many ask the memory that
	// it takes is bounded. asking has one for each of those that the operation asks
	// for, which wait as long as their callers do, and must not keep turns waiting.
	building, asking chan struct{}
	counts           struct {
		blocks, abstained, mainOnly, failed atomic.Int64
	}
}

// New returns a service.
func New(opts Options) *Service {
	cores := runtime.GOMAXPROCS(0)
	return &Service{opts: opts, building: make(chan struct{}, 2*cores), asking: make(chan struct{}, cores)}
}

// Counts are how many blocks were asked for since the start, and what became of them.
type Counts struct {
	Blocks    int64 `json:"blocks"`
	Abstained int64 `json:"abstained"` // nothing relevant enough was known
	MainOnly  int64 `json:"main_only"` // too little time for all channels
	Failed    int64 `json:"failed"`    // no time at all, a lock, damage or a defect: an empty block, or one without a source
}

// Counts returns the counters.
func (s *Service) Counts() Counts {
	return Counts{Blocks: s.counts.blocks.Load(), Abstained: s.counts.abstained.Load(), MainOnly: s.counts.mainOnly.Load(), Failed: s.counts.failed.Load()}
}

// Request asks for a block.
type Request struct {
	Text    string    // the question, or what the user just said
	Session string    // the session that the block is for
	Now     time.Time // resolves "yesterday" in Text; the service's clock where zero
	Tokens  int       // cap in place of the agent's; 0 for that
	// InPrompt is the seq of the first event of Session that stands in the prompt
	// already: such turns are not recalled again. 0 where none does.
	InPrompt int64
}

// Block is what is put into a prompt.
type Block struct {
	Text     string   `json:"text"`               // "" for nothing
	Lines    []string `json:"lines"`              // the memory lines in it, never null
	TraceID  string   `json:"trace_id"`           // the same for the same question and block
	Degraded string   `json:"degraded,omitempty"` // what went wrong, "" for nothing
	Trace    Trace    `json:"trace"`
}

// Trace says how a block came about.
type Trace struct {
	Health        string      `json:"health,omitempty"` // what was known to be wrong with the memory, and since when
	Terms         []string    `json:"terms"`            // of the question, as they were looked up
	Prefixes      []string    `json:"prefixes"`         // likewise
	Speakers      []string    `json:"speakers"`         // those named
	MinImportance int         `json:"min_importance"`
	Statuses      []string    `json:"statuses"`           // of the items looked at
	Mode          string      `json:"mode,omitempty"`     // what ranked: lexical (words) or hybrid (words and meaning)
	Model         string      `json:"model,omitempty"`    // whose vectors meaning was taken from
	Lexical       string      `json:"lexical,omitempty"`  // why words alone decided, where vectors were asked for
	Unranked      string      `json:"unranked,omitempty"` // why the reranker that is configured did not order the candidates
	Threshold     float64     `json:"threshold"`
	Relevance     float64     `json:"relevance"` // the highest; below Threshold nothing is injected
	Candidates    []Candidate `json:"candidates"`
}

// Candidate is a memory that was looked at.
type Candidate struct {
	Handle string             `json:"handle"`
	Score  float64            `json:"score"`
	Scores map[string]float64 `json:"scores"` // its parts
	In     bool               `json:"in"`
	Why    string             `json:"why"`              // it is in, or why not
	Verify []string           `json:"verify,omitempty"` // why a person should say whether it is right
}

// maxTraced is the most candidates in a trace.
const maxTraced = 80

// Block finds what memory holds about a request. It never fails and never takes
// longer than the agent's deadline: what does not work leaves the block without
// a source, or empty, with the reason in Degraded. The same question over the
// same memory gives the same bytes.
func (s *Service) Block(ctx context.Context, agent memory.AgentID, req Request) Block {
	return s.block(ctx, agent, req, 0)
}

// block is Block, with a deadline that is at least so long.
func (s *Service) block(ctx context.Context, agent memory.AgentID, req Request, atLeast time.Duration) Block {
	s.counts.blocks.Add(1)
	set := s.opts.Settings(agent)
	if req.Tokens > 0 {
		set.Tokens = req.Tokens
	}
	if set.Deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, max(set.Deadline, atLeast))
		defer cancel()
	}
	var out Block
	select {
	case s.building <- struct{}{}:
		done := make(chan Block, 1) // buffered: a late builder must not hang
		go s.builder(ctx, agent, req, set, done)
		select {
		case out = <-done:
		case <-ctx.Done():
			out = empty(req.Text, "no time: "+ctx.Err().Error())
		}
	case <-ctx.Done():
		out = empty(req.Text, "no time, others are being answered: "+ctx.Err().Error())
	}
	s.count(out)
	return out
}

// builder makes a block and gives its place back.
func (s *Service) builder(ctx context.Context, agent memory.AgentID, req Request, set Settings, done chan<- Block) {
	defer func() {
		<-s.building
		if p := recover(); p != nil {
			done <- empty(req.Text, fmt.Sprintf("recall failed: %v", p))
		}
	}()
	out := s.build(ctx, agent, req, set)
	if s.opts.Health != nil {
		out.Trace.Health = s.opts.Health(agent)
	}
	done <- out
}

func (s *Service) count(out Block) {
	switch {
	case out.Degraded == mainOnly:
		s.counts.mainOnly.Add(1)
	case out.Degraded != "":
		s.counts.failed.Add(1)
	case out.Text == "":
		s.counts.abstained.Add(1)
	}
}

// mainOnly is the reason given where there was no time for all channels.
const mainOnly = "no time for all channels"

func empty(question, reason string) Block {
	out := Block{Lines: []string{}, Degraded: reason, Trace: Trace{Terms: []string{}, Prefixes: []string{}, Speakers: []string{}, Statuses: []string{}, Candidates: []Candidate{}}}
	out.TraceID = traceID(question, "")
	return out
}

func traceID(question, block string) string {
	sum := sha256.Sum256([]byte(question + "\x00" + block))
	return hex.EncodeToString(sum[:6])
}

// build makes the block, first with all channels, then, where that took more
// than its share of the time, with the main one alone.
func (s *Service) build(ctx context.Context, agent memory.AgentID, req Request, set Settings) Block {
	out, err := s.attempt(ctx, agent, req, set)
	if err != nil {
		return empty(req.Text, err.Error())
	}
	return out
}

func (s *Service) attempt(ctx context.Context, agent memory.AgentID, req Request, set Settings) (Block, error) {
	full, cancel := share(ctx)
	defer cancel()
	found, err := s.find(full, agent, search{request: req, settings: set, limit: maxRanked, matches: maxMatched, akin: maxAkin})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		found, err = s.find(ctx, agent, search{request: req, settings: set, limit: maxRanked, matches: maxMatched, akin: maxAkin, mainOnly: true})
	}
	if err != nil {
		return Block{}, err
	}
	s.rerank(ctx, found)
	return s.pack(ctx, found)
}

// share returns a context for the first attempt: three fifths of the time left.
func share(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, bounded := ctx.Deadline()
	if !bounded {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)*3/5)
}

// What is looked at for a block.
const (
	maxRanked  = 256 // passages
	maxMatched = 30  // items of each column
	maxAkin    = 8   // items that are near in meaning alone: they rarely outdo those that hold the words
)

// search is what find looks for.
type search struct {
	request  Request
	settings Settings
	limit    int  // most passages
	matches  int  // most items of each column
	akin     int  // most items for their meaning alone
	mainOnly bool // leave out prefixes and sessions
	mode     mode
	statuses []memory.Status // of items; nil for those that the question asks for
	scope    scope
	probe    bool // look for probes alone
}

// scope says which sources are searched.
type scope int

const (
	everything scope = iota
	onlyItems
	onlyEpisodes
)

// found is what a search has found, best first in each list.
type found struct {
	search     search
	agent      memory.AgentID
	query      text.Query
	store      *archive.Store // nil where the agent has none
	release    func()
	episodes   []ranked
	items      []rankedItem
	near       map[string]float64      // how near items are, by id; nil where that was not asked
	turns      map[string]archive.Turn // of the items' evidence
	close      *closeness              // nil where words alone decide
	used       string                  // usedLexical and the others
	whyLexical error                   // why words alone decide, where vectors were asked for
	outdated   map[string][]string     // quotes that hold no more, by event; of the passages read so far
	unranked   error                   // why the reranker's order is not used
	failure    error                   // of a source that was left out
}

// degraded says what went wrong, "" for nothing.
func (f *found) degraded() string {
	switch {
	case f.failure != nil:
		return f.failure.Error()
	case f.search.mainOnly:
		return mainOnly
	}
	return ""
}

// find ranks passages and items. A source that does not work is left out, with
// the reason in failure; only a context that ended is an error. The caller calls
// release on what it gets.
func (s *Service) find(ctx context.Context, agent memory.AgentID, in search) (*found, error) {
	f := &found{search: in, agent: agent, release: func() {}}
	kept := false
	defer func() {
		if !kept { // also where something panics
			f.release()
		}
	}()
	asked := s.ask(ctx, f) // beside what follows
	hits, err := s.read(ctx, f)
	hidden := s.hides(f, hits)
	s.look(f, asked(), hits, hidden)
	f.failure = s.rankBoth(ctx, f, hits, err, hidden)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	kept = true
	return f, nil
}

// read opens the agent's archive, parses the question with the speakers that it
// knows, and looks its terms up. The hits serve to weigh terms of items too; they
// are empty, not nil, where there is no archive.
func (s *Service) read(ctx context.Context, f *found) (*archive.Hits, error) {
	in := f.search
	opts := text.Options{Now: in.request.Now}
	if opts.Now.IsZero() {
		opts.Now = s.opts.Now()
	}
	f.query = text.ParseQuery(in.request.Text, opts)
	store, release, err := s.opts.Archive(ctx, f.agent)
	if errors.Is(err, memory.ErrNotFound) {
		return &archive.Hits{}, nil
	}
	if err != nil {
		return &archive.Hits{}, err
	}
	f.store, f.release = store, release
	if opts.Speakers, err = store.Speakers(ctx); err != nil {
		return &archive.Hits{}, err
	}
	f.query = text.ParseQuery(in.request.Text, opts)
	prefixes := f.query.Prefixes
	if in.mainOnly {
		prefixes = nil
	}
	hits, err := store.Search(ctx, f.query.Terms, prefixes)
	if err != nil {
		return &archive.Hits{}, err
	}
	return hits, nil
}

// rankBoth ranks the passages, unless they could not be read, and the items beside
// them. It returns what went wrong with either.
func (s *Service) rankBoth(ctx context.Context, f *found, hits *archive.Hits, unread error, hidden func(session uint32) bool) error {
	passages := unread
	var items error
	func() {
		if f.search.scope != onlyEpisodes {
			defer beside(func() { items = s.findItems(ctx, f, hits) })()
		}
		if unread == nil && f.search.scope != onlyItems {
			f.episodes, passages = f.rankPassages(hits, hidden)
		}
	}()
	if items != nil {
		items = fmt.Errorf("items: %w", items)
	}
	return errors.Join(passages, items)
}

// beside begins work, and returns what waits for its end. Its panic is that of who waits.
func beside(work func()) (wait func()) {
	done := make(chan any, 1)
	go func() {
		defer func() { done <- recover() }()
		work()
	}()
	return func() {
		if p := <-done; p != nil {
			panic(p)
		}
	}
}

// rankPassages returns the best passages by what the search is to be ranked by.
func (f *found) rankPassages(hits *archive.Hits, hidden func(session uint32) bool) ([]ranked, error) {
	if f.search.mode == vector {
		return f.onlyMeaning(), nil
	}
	s := newScorer(hits, f.query, f.search.mainOnly)
	defer s.release()
	if f.search.probe {
		s.only = archive.Probe
	}
	return s.rank(f.search.limit, hidden, f.close)
}

// hides returns whether what was said in a session may not be told in the
// request's session: what was said in private, in a group. nil where nothing is hidden.
func (s *Service) hides(f *found, hits *archive.Hits) func(session uint32) bool {
	if !s.isGuarded(f) {
		return nil
	}
	known := make([]int8, len(hits.Sessions))
	return func(session uint32) bool {
		if known[session] == 0 {
			known[session] = 1
			if s.isPrivate(f, hits.Sessions[session]) {
				known[session] = 2
			}
		}
		return known[session] == 2
	}
}

// isGuarded reports whether the request's session must not see private ones.
func (s *Service) isGuarded(f *found) bool {
	return !f.search.settings.PrivateInGroups && s.opts.SessionKind(f.agent, f.search.request.Session) == memory.SessionGroup
}

func (s *Service) isPrivate(f *found, session string) bool {
	return session != f.search.request.Session && s.opts.SessionKind(f.agent, session) != memory.SessionGroup
}

// dateOf writes a day as lines show it.
func dateOf(t time.Time) string { return t.Format("2006-01-02") }
