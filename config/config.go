// Package config holds what can be configured: defaults, loading (flag over
// environment over file over default), checking, and a JSON Schema.
package config

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// defaults is default.yaml: every key with its default, and a comment that says
// what it means. docs/CONFIG.md is made of it.
//
//go:embed default.yaml
var defaults []byte

// Config is the whole configuration. Load makes a checked one.
type Config struct {
	Memory      Memory                     `json:"memory" jsonschema:"what is remembered at all"`
	Recall      Recall                     `json:"recall" jsonschema:"the block of relevant memory in a prompt"`
	Checkpoint  Checkpoint                 `json:"checkpoint" jsonschema:"distilling events into items"`
	Maintenance Maintenance                `json:"maintenance" jsonschema:"what the weekly maintenance merges, archives and marks"`
	Events      Events                     `json:"events" jsonschema:"the event log"`
	Flush       Flush                      `json:"flush" jsonschema:"checkpoint before turns leave a session's window"`
	Model       Model                      `json:"model" jsonschema:"the chat model"`
	Embeddings  Embeddings                 `json:"embeddings" jsonschema:"the model behind search by meaning"`
	Spend       Spend                      `json:"spend" jsonschema:"what agents may spend on models in one UTC day"`
	Runtime     Runtime                    `json:"runtime" jsonschema:"the agent loop"`
	Scheduler   Scheduler                  `json:"scheduler" jsonschema:"scheduled jobs"`
	HTTP        HTTP                       `json:"http" jsonschema:"what openclawssy serve answers over HTTP"`
	Proactive   Proactive                  `json:"proactive" jsonschema:"messages that an agent sends by itself"`
	Records     Records                    `json:"records" jsonschema:"the record store"`
	Graph       Graph                      `json:"graph" jsonschema:"the graph memory"`
	Workspace   Workspace                  `json:"workspace" jsonschema:"the OpenClaw workspace that an agent lives in"`
	Log         Log                        `json:"log" jsonschema:"the program's own log, on stderr"`
	Agents      map[string]json.RawMessage `json:"agents" jsonschema:"settings of single agents: a name, and under it any of the sections above"`
}

// Memory is the section memory.
type Memory struct {
	Enabled         bool     `json:"enabled" jsonschema:"false: no capture, no recall, no memory files; chat still runs"`
	MaxWorkingItems int      `json:"max_working_items" jsonschema:"hard cap of active items; 0 for none"`
	MaxPromptTokens int      `json:"max_prompt_tokens" jsonschema:"cap of the recall block, in tokens of 4 characters"`
	AutoCheckpoint  bool     `json:"auto_checkpoint" jsonschema:"keeps a checkpoint job every 6 hours"`
	AutoMaintenance bool     `json:"auto_maintenance" jsonschema:"keeps a weekly maintenance job"`
	CanaryEvery     Duration `json:"canary_every" jsonschema:"so often, if anything was said meanwhile, a probe is written, recalled and removed; 0s for never"`
}

// Recall is the section recall.
type Recall struct {
	MinImportance   int     `json:"min_importance" jsonschema:"items below are never injected, 1 to 5"`
	MaxItems        int     `json:"max_items" jsonschema:"lines in a block at most"`
	Threshold       float64 `json:"threshold" jsonschema:"inject nothing where no score reaches it; 0 for the fitted one, negative for never abstain"`
	DeadlineMS      int     `json:"deadline_ms" jsonschema:"milliseconds after which a turn goes on without memory"`
	GraphHops       int     `json:"graph_hops" jsonschema:"0 to 2: also look at memories that are so many steps in the graph away from what the question names"`
	Rerank          string  `json:"rerank" jsonschema:"what orders the best candidates anew: none, mmr (of two that say the same one moves back) or endpoint (a cross-encoder)"`
	RerankURL       string  `json:"rerank_url" jsonschema:"address of the endpoint, in the form that Cohere, Jina, vLLM, llama.cpp, Voyage and TEI share"`
	RerankModel     string  `json:"rerank_model" jsonschema:"the endpoint's model; empty where it has one"`
	RerankKey       string  `json:"rerank_key" jsonschema:"env:NAME or file:PATH of its key; empty for none"`
	RerankPrivate   bool    `json:"rerank_private" jsonschema:"true: the endpoint may stand for a private address"`
	PrivateInGroups bool    `json:"private_in_groups" jsonschema:"true: group sessions may see what was said in private ones"`
}

// Checkpoint is the section checkpoint.
type Checkpoint struct {
	BatchTokens int    `json:"batch_tokens" jsonschema:"tokens of events in one model call at most"`
	OnFailure   string `json:"on_failure" jsonschema:"park (keep the events for later) or offline (distil them by rules, provisionally)"`
}

// Maintenance is the section maintenance.
type Maintenance struct {
	StaleDays  int    `json:"stale_days" jsonschema:"memories of importance 1 and 2 that were not used for so many days are archived; 0 for never"`
	VerifyDays int    `json:"verify_days" jsonschema:"memories of importance 3 and above that nobody has confirmed for so many days are marked; 0 for never"`
	Retention  string `json:"retention" jsonschema:"stale (by stale_days) or tiers (importance 4 and 5 for ever, 3 for 30 days, 1 and 2 for 7)"`
}

// Events is the section events.
type Events struct {
	PackAfterDays int `json:"pack_after_days" jsonschema:"days of the log that are older are compressed, and read as before; 0 for never"`
	RetentionDays int `json:"retention_days" jsonschema:"maintenance proposes to erase older events, and erases none itself; 0 to keep all"`
}

// Flush is the section flush.
type Flush struct {
	ContextWindow       int      `json:"context_window" jsonschema:"tokens of the model's context; 0 for model.context_window"`
	ReserveTokens       int      `json:"reserve_tokens" jsonschema:"tokens kept free for the answer"`
	SoftThresholdTokens int      `json:"soft_threshold_tokens" jsonschema:"tokens before the edge at which a checkpoint is asked for"`
	Idle                Duration `json:"idle" jsonschema:"a session in which nothing was said for so long is distilled; 0s for never"`
}

// Model is the section model.
type Model struct {
	Provider      string   `json:"provider" jsonschema:"offline (no model), openai, openrouter, requesty, zai, ollama, or generic for any other OpenAI-compatible server"`
	BaseURL       string   `json:"base_url" jsonschema:"of the API, with /v1; empty for the provider's own"`
	Name          string   `json:"name" jsonschema:"the model's id at the provider"`
	Key           string   `json:"key" jsonschema:"env:NAME or file:PATH; empty for none"`
	AllowPrivate  bool     `json:"allow_private" jsonschema:"true: the host's name may stand for a private address, as in a container network"`
	ContextWindow int      `json:"context_window" jsonschema:"tokens"`
	Timeout       Duration `json:"timeout" jsonschema:"of one call, such as 60s"`
	MaxRetries    int      `json:"max_retries" jsonschema:"after a failed call"`
}

// Embeddings is the section embeddings.
type Embeddings struct {
	Provider          string   `json:"provider" jsonschema:"lsa (built in, asks nobody), off, auto (the first of openai, gemini, voyage and mistral whose key is in the environment, else lsa), openai, openrouter, mistral, gemini, voyage, or generic for any other OpenAI-compatible server"`
	Model             string   `json:"model" jsonschema:"the model's id at the provider; empty for the provider's usual one"`
	BaseURL           string   `json:"base_url" jsonschema:"of the API, with /v1; empty for the provider's own"`
	Key               string   `json:"key" jsonschema:"env:NAME or file:PATH; empty for the provider's usual variable, such as OPENAI_API_KEY"`
	AllowPrivate      bool     `json:"allow_private" jsonschema:"true: the host's name may stand for a private address, as in a container network"`
	Dimensions        int      `json:"dimensions" jsonschema:"length of the vectors to ask for; 0 for the model's own"`
	MaxInputTokens    int      `json:"max_input_tokens" jsonschema:"longer texts are cut; 0 for what is known of the model"`
	QueryPrefix       string   `json:"query_prefix" jsonschema:"stands before every question, for models that want it"`
	TextPrefix        string   `json:"text_prefix" jsonschema:"stands before every other text"`
	BatchTexts        int      `json:"batch_texts" jsonschema:"texts in one request at most"`
	RequestsPerMinute int      `json:"requests_per_minute" jsonschema:"at most; 0 for no limit"`
	Timeout           Duration `json:"timeout" jsonschema:"of one request with its retries, such as 30s"`
	MaxRetries        int      `json:"max_retries" jsonschema:"after a failed request"`
	DailyTokens       int      `json:"daily_tokens" jsonschema:"of one agent in one UTC day, counted apart from the chat model's; 0 for no limit"`
}

// Spend is the section spend.
type Spend struct {
	DailyTokens int `json:"daily_tokens" jsonschema:"of one agent; 0 for no limit"`
	DailyCalls  int `json:"daily_calls" jsonschema:"of one agent; 0 for no limit"`
	TotalTokens int `json:"total_tokens" jsonschema:"of all agents together; 0 for no limit"`
	TotalCalls  int `json:"total_calls" jsonschema:"of all agents together; 0 for no limit"`
}

// Runtime is the section runtime.
type Runtime struct {
	Instructions  string   `json:"instructions" jsonschema:"the system prompt's own words; empty for the built-in ones"`
	Tools         []string `json:"tools" jsonschema:"operations that the model may call, by name or pattern such as memory.*"`
	MaxToolRounds int      `json:"max_tool_rounds" jsonschema:"model calls in one turn at most"`
}

// Scheduler is the section scheduler.
type Scheduler struct {
	JobDeadline Duration `json:"job_deadline" jsonschema:"of a job that names none"`
}

// HTTP is the section http.
type HTTP struct {
	Enabled        bool     `json:"enabled" jsonschema:"false: serve runs the schedule and listens to nothing"`
	Listen         string   `json:"listen" jsonschema:"address and port; port 0 takes a free one"`
	Hosts          []string `json:"hosts" jsonschema:"names, without port, that the server is asked by besides those of this machine"`
	Origins        []string `json:"origins" jsonschema:"web origins whose pages may ask, such as https://example.org"`
	TLSCertificate string   `json:"tls_certificate" jsonschema:"path of a PEM file; with it the server speaks TLS only"`
	TLSKey         string   `json:"tls_key" jsonschema:"path of the PEM file of its key"`
	MCPTools       []string `json:"mcp_tools" jsonschema:"operations that clients of the Model Context Protocol see at /mcp; all for every one; empty for eight of memory's"`
	RatePerSecond  int      `json:"rate_per_second" jsonschema:"requests of one token"`
	MaxConnections int      `json:"max_connections" jsonschema:"at the same time"`
}

// Proactive is the section proactive.
type Proactive struct {
	Enabled        bool     `json:"enabled" jsonschema:"false: no messages are made or sent"`
	DailyCap       int      `json:"daily_cap" jsonschema:"messages to one person in a day of theirs at most"`
	Cooldown       Duration `json:"cooldown" jsonschema:"between two messages of one trigger to one person; reminders keep their own times"`
	QuietHours     string   `json:"quiet_hours" jsonschema:"from-to where the person is, such as 22-7 or 22:30-6:45; empty for none"`
	Agents         []string `json:"agents" jsonschema:"agents of this home that may be written to; * for all"`
	WebhookURL     string   `json:"webhook_url" jsonschema:"messages are posted there too; empty for none"`
	WebhookSecret  string   `json:"webhook_secret" jsonschema:"env:NAME or file:PATH of what the posts are signed with"`
	WebhookPrivate bool     `json:"webhook_private" jsonschema:"true: the webhook's host may stand for a private address"`
}

// ParseHours reads a stretch of the day such as 22-7 or 22:30-6:45 as minutes
// after midnight; both are 0 for "", and 0-24 is the whole day.
func ParseHours(s string) (from, to int, err error) {
	if s == "" {
		return 0, 0, nil
	}
	a, b, found := strings.Cut(s, "-")
	from, okFrom := parseClock(a)
	to, okTo := parseClock(b)
	if !found || !okFrom || !okTo {
		return 0, 0, &memory.FieldError{Field: "proactive.quiet_hours", Reason: fmt.Sprintf("must be two hours of the day, not %q", s), Hint: `such as "22-7" or "22:30-6:45"; empty for none`}
	}
	return from, to, nil
}

// parseClock reads an hour, with or without minutes, as minutes after midnight.
func parseClock(s string) (int, bool) {
	h, m, exact := strings.Cut(strings.TrimSpace(s), ":")
	if !exact {
		m = "0"
	}
	hour, errHour := strconv.Atoi(h)
	minute, errMinute := strconv.Atoi(m)
	all := hour*60 + minute
	return all, errHour == nil && errMinute == nil && hour >= 0 && all <= 24*60 && minute >= 0 && minute < 60
}

// Records is the section records.
type Records struct {
	Redact        bool              `json:"redact" jsonschema:"false: payloads are stored as they come, for hosts that own them"`
	ListLimit     int               `json:"list_limit" jsonschema:"the largest limit of a list"`
	Recall        bool              `json:"recall" jsonschema:"true: long-term records are recalled beside items, as imported ones"`
	Namespaces    []string          `json:"namespaces" jsonschema:"those that records may be in"`
	DefaultTTL    map[string]*int64 `json:"default_ttl_by_namespace" jsonschema:"seconds, or null, for records that are written without a ttl"`
	PruneStrategy map[string]string `json:"prune_strategy_by_namespace" jsonschema:"ttl_only, or none to keep even what has expired"`
}

// Graph is the section graph.
type Graph struct {
	Redact     bool     `json:"redact" jsonschema:"false: labels and payloads are stored as they come, for hosts that own them"`
	FromMemory bool     `json:"from_memory" jsonschema:"true: memories and the people, places, projects, tools and decisions in them are nodes of the graph"`
	Hooks      bool     `json:"hooks" jsonschema:"true: tool calls, scheduled runs, shortened prompts, messages of agents and changes of the persona are written into the graph"`
	HooksTTL   Duration `json:"hooks_ttl" jsonschema:"how long such a node stays, such as 720h; 0s for ever"`
}

// Workspace is the section workspace.
type Workspace struct {
	Path       string `json:"path" jsonschema:"directory of an OpenClaw workspace; empty for none"`
	Wake       bool   `json:"wake" jsonschema:"a session's prompt begins with the workspace's files"`
	Sleep      bool   `json:"sleep" jsonschema:"a session's end is written into the active context and the day's notes"`
	FileTokens int    `json:"file_tokens" jsonschema:"of one file in the prompt at most"`
	WakeTokens int    `json:"wake_tokens" jsonschema:"of all files in the prompt at most; never more than a quarter of the model's window"`
}

// Log is the section log.
type Log struct {
	Level string `json:"level" jsonschema:"debug, info, warn or error"`
}

// Duration is a time.Duration that is written as text: 50ms, 6h.
type Duration time.Duration

// MarshalText writes d as time.Duration does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads the form of time.ParseDuration.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return err
	}
	*d = Duration(v)
	return nil
}

// Sources says where Load reads. The zero value gives the defaults.
type Sources struct {
	File    string   // path of config.yaml; a missing file is no error
	Environ []string // NAME=value, of which OPENCLAWSSY_SECTION_KEY are read
	Set     []string // key=value, such as recall.min_importance=2; wins over all
}

// Load reads the configuration and checks it whole.
func Load(src Sources) (Config, error) {
	cfg, err := Default()
	if err != nil {
		return Config{}, err
	}
	if src.File != "" {
		text, err := os.ReadFile(src.File)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return Config{}, memory.Errorf(memory.ErrUnavailable, "read configuration: %w", err)
		default:
			if err := overlay(&cfg, src.File, text); err != nil {
				return Config{}, err
			}
		}
	}
	if err := fromEnvironment(&cfg, src.Environ); err != nil {
		return Config{}, err
	}
	for _, s := range src.Set {
		key, value, found := strings.Cut(s, "=")
		if !found {
			return Config{}, &memory.FieldError{Field: "set", Reason: fmt.Sprintf("must be KEY=VALUE, not %q", s), Hint: "for example --set recall.min_importance=2"}
		}
		if err := set(&cfg, key, value, "--set"); err != nil {
			return Config{}, err
		}
	}
	return cfg, cfg.Validate()
}

// Default returns the built-in configuration.
func Default() (Config, error) {
	var cfg Config
	return cfg, overlay(&cfg, "default.yaml", defaults)
}

// DefaultYAML returns the defaults as a commented file, to start one's own from.
func DefaultYAML() []byte { return bytes.Clone(defaults) }

// Schema returns the JSON Schema of a configuration file.
func Schema() (*jsonschema.Schema, error) {
	s, err := jsonschema.For[Config](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[Duration]():        {Type: "string", Description: "a duration such as 50ms, 90s or 6h"},
		reflect.TypeFor[json.RawMessage](): {Type: "object"},
	}})
	if err != nil {
		return nil, fmt.Errorf("schema of the configuration: %w", err)
	}
	s.Title = "Openclawssy configuration"
	optional(s)
	return s, nil
}

// optional drops the lists of required members: every key has a default.
func optional(s *jsonschema.Schema) {
	s.Required = nil
	for _, p := range s.Properties {
		optional(p)
	}
}

// For returns the configuration of one agent: cfg with its own section over it.
func (cfg Config) For(agent memory.AgentID) (Config, error) {
	raw, own := cfg.Agents[string(agent)]
	if !own {
		return cfg, nil
	}
	of := cfg
	of.Runtime.Tools = slices.Clone(cfg.Runtime.Tools)
	of.Proactive.Agents = slices.Clone(cfg.Proactive.Agents)
	if err := decode(&of, raw, func(string) string { return "agents." + string(agent) }); err != nil {
		return Config{}, err
	}
	of.Agents = cfg.Agents
	return of, of.validateSections()
}

// ReadYAML reads a YAML (or JSON) text into a struct with json tags. Members that
// the struct does not have are ErrInvalid.
func ReadYAML(text []byte, into any) error {
	asJSON, err := yaml.YAMLToJSON(text)
	if err != nil {
		return memory.Errorf(memory.ErrInvalid, "not YAML: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(asJSON))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return memory.Errorf(memory.ErrInvalid, "%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// overlay reads a YAML (or JSON) text over cfg.
func overlay(cfg *Config, file string, text []byte) error {
	asJSON, err := yaml.YAMLToJSON(text)
	if err != nil {
		return memory.Errorf(memory.ErrInvalid, "%s is not YAML: %w", file, err)
	}
	if trimmed := bytes.TrimSpace(asJSON); len(trimmed) == 0 || string(trimmed) == "null" {
		return nil
	}
	return decode(cfg, asJSON, func(key string) string { return place(file, text, key) })
}

// decode fills cfg from a JSON object. where says in which file and line a key
// stands.
func decode(cfg *Config, asJSON []byte, where func(key string) string) error {
	var tree any
	if err := json.Unmarshal(asJSON, &tree); err != nil {
		return memory.Errorf(memory.ErrInvalid, "%s: %w", where(""), err)
	}
	if err := unknown(tree, reflect.TypeFor[Config](), "", where); err != nil {
		return err
	}
	if err := json.Unmarshal(asJSON, cfg); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return &memory.FieldError{Field: wrong.Field, Reason: fmt.Sprintf("must be %s, not %s (%s)", kindName(wrong.Type), wrong.Value, where(wrong.Field))}
		}
		return memory.Errorf(memory.ErrInvalid, "%s: %w", where(""), err)
	}
	return nil
}

// unknown reports the first key of tree that t has no field for.
func unknown(tree any, t reflect.Type, at string, where func(string) string) error {
	object, isObject := tree.(map[string]any)
	if !isObject || t.Kind() != reflect.Struct {
		return nil
	}
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		fields[jsonName(t.Field(i))] = t.Field(i).Type
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		path := strings.TrimPrefix(at+"."+key, ".")
		ft, known := fields[key]
		if !known {
			hint := "openclawssy config show lists the keys"
			if near := memory.Nearest(key, slices.Sorted(maps.Keys(fields))); near != "" {
				hint = "did you mean " + strings.TrimPrefix(at+"."+near, ".") + "?"
			}
			return &memory.FieldError{Field: path, Reason: "is not a known key (" + where(path) + ")", Hint: hint}
		}
		if err := unknown(object[key], ft, path, where); err != nil {
			return err
		}
	}
	return nil
}

// place names the file, and the line where key stands in it if that is found.
func place(file string, text []byte, key string) string {
	if key == "" {
		return file
	}
	path, err := yaml.PathString("$." + key)
	if err != nil {
		return file
	}
	node, err := path.ReadNode(bytes.NewReader(text))
	if err != nil || node == nil {
		return file
	}
	return fmt.Sprintf("%s line %d", file, node.GetToken().Position.Line)
}

// fromEnvironment reads OPENCLAWSSY_SECTION_KEY for every key of two levels. An
// empty value counts as none. A name that starts like a section's but is no key is
// an error; other names may belong to others, as those that a container's
// platform sets.
func fromEnvironment(cfg *Config, environ []string) error {
	keys := map[string]string{} // by name
	for _, key := range Keys() {
		keys[EnvName(key)] = key
	}
	for _, entry := range slices.Sorted(slices.Values(environ)) {
		name, value, _ := strings.Cut(entry, "=")
		key, known := keys[name]
		if !known && startsSection(name) {
			return &memory.FieldError{Field: name, Reason: "is not a known key (environment)", Hint: nearestName(name, slices.Sorted(maps.Keys(keys)))}
		}
		if !known || value == "" {
			continue
		}
		if err := set(cfg, key, value, name); err != nil {
			return err
		}
	}
	return nil
}

// startsSection reports whether a variable's name is one of a section's keys, or
// meant to be one.
func startsSection(name string) bool {
	t := reflect.TypeFor[Config]()
	for i := range t.NumField() {
		if section := t.Field(i); section.Type.Kind() == reflect.Struct && strings.HasPrefix(name, EnvName(jsonName(section))+"_") {
			return true
		}
	}
	return false
}

func nearestName(name string, names []string) string {
	if near := memory.Nearest(name, names); near != "" {
		return "did you mean " + near + "?"
	}
	return "openclawssy config show lists the keys"
}

// EnvName is the environment variable of a key: recall.min_importance is
// OPENCLAWSSY_RECALL_MIN_IMPORTANCE.
func EnvName(key string) string {
	return "OPENCLAWSSY_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// Keys lists the keys (section.key) in the order of the sections.
func Keys() []string {
	var keys []string
	t := reflect.TypeFor[Config]()
	for i := range t.NumField() {
		section := t.Field(i)
		if section.Type.Kind() != reflect.Struct {
			continue
		}
		for j := range section.Type.NumField() {
			keys = append(keys, jsonName(section)+"."+jsonName(section.Type.Field(j)))
		}
	}
	return keys
}

// set gives one key a value written as text; source is named in errors.
func set(cfg *Config, key, value, source string) error {
	section, name, _ := strings.Cut(key, ".")
	field, err := find(reflect.ValueOf(cfg).Elem(), section, name)
	if err != nil {
		return err
	}
	fail := func(form string) error {
		return &memory.FieldError{Field: key, Reason: fmt.Sprintf("must be %s, not %q (%s)", form, value, source)}
	}
	if d, isDuration := field.Addr().Interface().(*Duration); isDuration {
		if d.UnmarshalText([]byte(value)) != nil {
			return fail("a duration such as 90s")
		}
		return nil
	}
	switch field.Kind() {
	case reflect.Bool:
		b, err := strconv.ParseBool(value)
		if err != nil {
			return fail("true or false")
		}
		field.SetBool(b)
	case reflect.Int:
		n, err := strconv.Atoi(value)
		if err != nil {
			return fail("a whole number")
		}
		field.SetInt(int64(n))
	case reflect.Float64:
		f, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return fail("a number")
		}
		field.SetFloat(f)
	case reflect.Slice:
		field.Set(reflect.ValueOf(strings.Split(value, ",")))
	case reflect.String:
		field.SetString(value)
	default:
		return &memory.FieldError{Field: key, Reason: fmt.Sprintf("can be set in config.yaml only (%s)", source)}
	}
	return nil
}

func find(cfg reflect.Value, section, name string) (reflect.Value, error) {
	for i := range cfg.NumField() {
		if jsonName(cfg.Type().Field(i)) != section || cfg.Field(i).Kind() != reflect.Struct {
			continue
		}
		for j := range cfg.Field(i).NumField() {
			if jsonName(cfg.Field(i).Type().Field(j)) == name {
				return cfg.Field(i).Field(j), nil
			}
		}
	}
	key := section + "." + name
	hint := "openclawssy config show lists the keys"
	if near := memory.Nearest(key, Keys()); near != "" {
		hint = "did you mean " + near + "?"
	}
	return reflect.Value{}, &memory.FieldError{Field: key, Reason: "is not a known key", Hint: hint}
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	case reflect.String:
		return "a text"
	}
	return "a section"
}
