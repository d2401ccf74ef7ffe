package record

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// The namespaces of the contract, and the kinds that it recommends for each.
const (
	session  = "session"
	longTerm = "long_term"
	dailyLog = "daily_log"
	workflow = "workflow"
	ops      = "ops"

	dailyNote      = "daily_log.note"
	projectFact    = "long_term.project_fact"
	userPreference = "long_term.user_preference"
)

var contractNamespaces = []string{session, longTerm, dailyLog, workflow, ops}

// Profile is the version of the contract that the store implements, as hosts
// advertise it.
const Profile = "v1.1-deterministic-metadata"

// DefaultListLimit is the largest limit of a list where none is configured.
const DefaultListLimit = 1000

// Strategies of pruning a namespace.
const (
	PruneTTLOnly = "ttl_only" // remove what has expired
	PruneNone    = "none"     // keep even what has expired
)

// Config is what may be configured per agent. The zero value is the contract's
// default.
type Config struct {
	// Namespaces replaces the contract's whitelist.
	Namespaces []string
	// DefaultTTL gives records that are written without a ttl one, in seconds,
	// by namespace; a nil value means none. Stored records are not changed.
	DefaultTTL map[string]*int64
	// PruneStrategy says by namespace what Prune may remove: PruneTTLOnly (the
	// default) or PruneNone.
	PruneStrategy map[string]string
	// ListLimit is the largest limit of a list; DefaultListLimit if zero.
	ListLimit int
}

// complete checks c and fills in the defaults.
func (c Config) complete() (Config, error) {
	if len(c.Namespaces) == 0 {
		c.Namespaces = contractNamespaces
	}
	if slices.Contains(c.Namespaces, "") {
		return Config{}, &memory.FieldError{Field: "valid_namespaces", Reason: "must not hold an empty name"}
	}
	for ns := range c.DefaultTTL {
		if !slices.Contains(c.Namespaces, ns) {
			return Config{}, &memory.FieldError{Field: "default_ttl_by_namespace." + ns, Reason: "is not a namespace", Hint: c.namespaceHint()}
		}
	}
	for ns, strategy := range c.PruneStrategy {
		field := "prune_strategy_by_namespace." + ns
		if !slices.Contains(c.Namespaces, ns) {
			return Config{}, &memory.FieldError{Field: field, Reason: "is not a namespace", Hint: c.namespaceHint()}
		}
		if strategy != PruneTTLOnly && strategy != PruneNone {
			return Config{}, &memory.FieldError{Field: field, Reason: "must be ttl_only or none, not " + strconv.Quote(strategy)}
		}
	}
	if c.ListLimit < 0 {
		return Config{}, &memory.FieldError{Field: "list_limit", Reason: "must not be negative"}
	}
	if c.ListLimit == 0 {
		c.ListLimit = DefaultListLimit
	}
	return c, nil
}

// Validate reports the first rule that c breaks.
func (c Config) Validate() error {
	_, err := c.complete()
	return err
}

func (c Config) namespaceHint() string {
	return "the namespaces are " + strings.Join(c.Namespaces, ", ")
}

// checkNamespace refuses names outside the whitelist. It compares byte for byte.
func (c Config) checkNamespace(ns string) error {
	if !slices.Contains(c.Namespaces, ns) {
		return &memory.FieldError{Field: "namespace", Reason: "is not known: " + strconv.Quote(ns), Hint: c.namespaceHint()}
	}
	return nil
}

// protected lists the namespaces that Prune leaves alone.
func (c Config) protected() []string {
	names := []string{} // never nil: it becomes a JSON list
	for ns, strategy := range c.PruneStrategy {
		if strategy == PruneNone {
			names = append(names, ns)
		}
	}
	slices.Sort(names)
	return names
}

// Key names one record. Keys are compared byte for byte; a store holds at most
// one record of a key.
type Key struct {
	Namespace string `json:"namespace" jsonschema:"lifetime and scope: session, long_term, daily_log, workflow or ops"`
	Kind      string `json:"record_kind" jsonschema:"logical type, such as workflow.checkpoint"`
	ID        string `json:"record_id" jsonschema:"name within its namespace and kind"`
}

// check reports the first rule of the contract that k breaks. Blank texts are
// names like others.
func (k Key) check(c Config) error {
	if err := c.checkNamespace(k.Namespace); err != nil {
		return err
	}
	if err := checkName("record_kind", k.Kind); err != nil {
		return err
	}
	return checkName("record_id", k.ID)
}

func checkName(field, s string) error {
	switch {
	case s == "":
		return &memory.FieldError{Field: field, Reason: "must not be empty"}
	case !utf8.ValidString(s):
		return &memory.FieldError{Field: field, Reason: "must be UTF-8 text"}
	}
	return nil
}

// Record is one record as the contract's get answers it. Times are texts: UTC
// with offset +00:00 where this store wrote them, else what another program
// wrote.
type Record struct {
	Key
	CreatedAt  string          `json:"created_at"`
	UpdatedAt  string          `json:"updated_at"`
	TTLSeconds *int64          `json:"ttl_seconds"`
	Payload    json.RawMessage `json:"payload"`
	Metadata   json.RawMessage `json:"metadata"` // a JSON object, or null
	number     int64           // of its row; see Handle
}

// handlePrefix begins the handle of every record.
const handlePrefix = "REC-"

// Handle returns "REC-n", unique within the store and stable until the record
// is deleted.
func (r Record) Handle() string { return handlePrefix + strconv.FormatInt(r.number, 10) }

// handleNumber is the inverse of Handle.
func handleNumber(handle string) (int64, error) {
	digits, isRecord := strings.CutPrefix(handle, handlePrefix)
	n, err := strconv.ParseInt(digits, 10, 64)
	if !isRecord || err != nil || n < 1 {
		return 0, &memory.FieldError{Field: "handle", Reason: "must be REC- and a number, not " + strconv.Quote(handle)}
	}
	return n, nil
}
