package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/openclawssy/openclawssy/internal/memory"
)

// Validate reports the first rule that cfg breaks, in any section or agent.
func (cfg Config) Validate() error {
	if err := cfg.validateSections(); err != nil {
		return err
	}
	for name := range cfg.Agents {
		agent, err := memory.ParseAgentID(name)
		if err != nil {
			return &memory.FieldError{Field: "agents." + name, Reason: "is not an agent: " + err.Error()}
		}
		if _, err := cfg.For(agent); err != nil {
			return fmt.Errorf("agents.%s: %w", name, err)
		}
	}
	return nil
}

func (cfg Config) validateSections() error {
	for _, n := range []struct {
		key         string
		value       int
		least, most int
	}{
		{"memory.max_working_items", cfg.Memory.MaxWorkingItems, 0, 100_000_000},
		{"memory.max_prompt_tokens", cfg.Memory.MaxPromptTokens, 50, 100_000},
		{"recall.min_importance", cfg.Recall.MinImportance, 1, 5},
		{"recall.max_items", cfg.Recall.MaxItems, 1, 1000},
		{"recall.deadline_ms", cfg.Recall.DeadlineMS, 1, 60_000},
		{"recall.graph_hops", cfg.Recall.GraphHops, 0, 2},
		{"checkpoint.batch_tokens", cfg.Checkpoint.BatchTokens, 200, 1_000_000},
		{"maintenance.stale_days", cfg.Maintenance.StaleDays, 0, 36_500},
		{"maintenance.verify_days", cfg.Maintenance.VerifyDays, 0, 36_500},
		{"events.pack_after_days", cfg.Events.PackAfterDays, 0, 36_500},
		{"events.retention_days", cfg.Events.RetentionDays, 0, 36_500},
		{"flush.context_window", cfg.Flush.ContextWindow, 0, 100_000_000},
		{"flush.reserve_tokens", cfg.Flush.ReserveTokens, 0, 10_000_000},
		{"flush.soft_threshold_tokens", cfg.Flush.SoftThresholdTokens, 0, 10_000_000},
		{"model.context_window", cfg.Model.ContextWindow, 1000, 100_000_000},
		{"model.max_retries", cfg.Model.MaxRetries, 0, 10},
		{"embeddings.dimensions", cfg.Embeddings.Dimensions, 0, 8192},
		{"embeddings.max_input_tokens", cfg.Embeddings.MaxInputTokens, 0, 1_000_000},
		{"embeddings.batch_texts", cfg.Embeddings.BatchTexts, 1, 2048},
		{"embeddings.requests_per_minute", cfg.Embeddings.RequestsPerMinute, 0, 1_000_000},
		{"embeddings.max_retries", cfg.Embeddings.MaxRetries, 0, 10},
		{"embeddings.daily_tokens", cfg.Embeddings.DailyTokens, 0, 1 << 40},
		{"spend.daily_tokens", cfg.Spend.DailyTokens, 0, 1 << 40},
		{"spend.daily_calls", cfg.Spend.DailyCalls, 0, 1 << 30},
		{"spend.total_tokens", cfg.Spend.TotalTokens, 0, 1 << 40},
		{"spend.total_calls", cfg.Spend.TotalCalls, 0, 1 << 30},
		{"http.rate_per_second", cfg.HTTP.RatePerSecond, 1, 1_000_000},
		{"http.max_connections", cfg.HTTP.MaxConnections, 1, 1_000_000},
		{"proactive.daily_cap", cfg.Proactive.DailyCap, 0, 1000},
		{"records.list_limit", cfg.Records.ListLimit, 1, 1_000_000},
		{"workspace.file_tokens", cfg.Workspace.FileTokens, 10, 1_000_000},
		{"workspace.wake_tokens", cfg.Workspace.WakeTokens, 10, 10_000_000},
		{"runtime.max_tool_rounds", cfg.Runtime.MaxToolRounds, 1, 100},
	} {
		if n.value < n.least || n.value > n.most {
			return &memory.FieldError{Field: n.key, Reason: fmt.Sprintf("must be between %d and %d, not %d", n.least, n.most, n.value)}
		}
	}
	for _, w := range []struct {
		key, value string
		allowed    []string
	}{
		{"recall.rerank", cfg.Recall.Rerank, []string{"none", "mmr", "endpoint"}},
		{"checkpoint.on_failure", cfg.Checkpoint.OnFailure, []string{"park", "offline"}},
		{"maintenance.retention", cfg.Maintenance.Retention, []string{"stale", "tiers"}},
		{"model.provider", cfg.Model.Provider, []string{"offline", "openai", "openrouter", "requesty", "zai", "ollama", "generic"}},
		{"embeddings.provider", cfg.Embeddings.Provider, []string{"lsa", "off", "auto", "openai", "openrouter", "mistral", "gemini", "voyage", "generic"}},
		{"log.level", cfg.Log.Level, []string{"debug", "info", "warn", "error"}},
	} {
		if !slices.Contains(w.allowed, w.value) {
			return &memory.FieldError{Field: w.key, Reason: fmt.Sprintf("must be %s, not %q", strings.Join(w.allowed, " or "), w.value)}
		}
	}
	for _, d := range []struct {
		key   string
		value Duration
	}{{"model.timeout", cfg.Model.Timeout}, {"embeddings.timeout", cfg.Embeddings.Timeout}, {"scheduler.job_deadline", cfg.Scheduler.JobDeadline}} {
		if v := time.Duration(d.value); v < time.Second || v > 24*time.Hour {
			return &memory.FieldError{Field: d.key, Reason: "must be between 1s and 24h, not " + v.String()}
		}
	}
	if cfg.Recall.Rerank == "endpoint" && cfg.Recall.RerankURL == "" {
		return &memory.FieldError{Field: "recall.rerank_url", Reason: "is required with recall.rerank: endpoint", Hint: "such as http://localhost:8012/v1/rerank"}
	}
	if err := checkSecretRef("recall.rerank_key", cfg.Recall.RerankKey); err != nil {
		return err
	}
	if cfg.Flush.Idle < 0 {
		return &memory.FieldError{Field: "flush.idle", Reason: "must not be negative", Hint: "such as 30m; 0s for never"}
	}
	if cfg.Memory.CanaryEvery < 0 {
		return &memory.FieldError{Field: "memory.canary_every", Reason: "must not be negative", Hint: "such as 24h; 0s for never"}
	}
	if cfg.Graph.HooksTTL < 0 {
		return &memory.FieldError{Field: "graph.hooks_ttl", Reason: "must not be negative", Hint: "such as 720h; 0s keeps the nodes for ever"}
	}
	if err := cfg.Proactive.validate(); err != nil {
		return err
	}
	if err := cfg.Embeddings.Validate(); err != nil {
		return err
	}
	return cfg.Model.validate()
}

// Validate reports what in e does not go together.
func (e Embeddings) Validate() error {
	if err := checkSecretRef("embeddings.key", e.Key); err != nil {
		return err
	}
	if err := checkBaseURL("embeddings.base_url", e.BaseURL); err != nil {
		return err
	}
	builtIn := e.Provider == "lsa" || e.Provider == "off" || e.Provider == "auto"
	switch {
	case builtIn && (e.Model != "" || e.BaseURL != "" || e.Key != ""):
		return &memory.FieldError{Field: "embeddings.provider", Reason: fmt.Sprintf("is %s, which takes no model, base_url or key", e.Provider), Hint: "name the provider, such as openai or generic"}
	case e.Provider == "generic" && e.BaseURL == "":
		return &memory.FieldError{Field: "embeddings.base_url", Reason: "is required with provider generic", Hint: "for example http://localhost:11434/v1"}
	case e.Provider == "generic" && e.Model == "":
		return &memory.FieldError{Field: "embeddings.model", Reason: "is required with provider generic", Hint: "the model's id at the endpoint, such as nomic-embed-text"}
	}
	return nil
}

// checkBaseURL refuses what no API can stand at; "" is the provider's own.
func checkBaseURL(field, raw string) error {
	if raw == "" {
		return nil
	}
	u, err := url.Parse(raw)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil {
		return &memory.FieldError{Field: field, Reason: "must be an http or https URL without user or password", Hint: "for example http://localhost:11434/v1"}
	}
	return nil
}

func (p Proactive) validate() error {
	if p.Cooldown < 0 || time.Duration(p.Cooldown) > 31*24*time.Hour {
		return &memory.FieldError{Field: "proactive.cooldown", Reason: "must be between 0s and 744h"}
	}
	if _, _, err := ParseHours(p.QuietHours); err != nil {
		return err
	}
	for _, name := range p.Agents {
		if name == "*" {
			continue
		}
		if _, err := memory.ParseAgentID(name); err != nil {
			return &memory.FieldError{Field: "proactive.agents", Reason: fmt.Sprintf("%q is no agent's name", name), Hint: "names of agents of this home, or * for all"}
		}
	}
	switch {
	case p.WebhookURL == "":
		return nil
	case p.WebhookSecret == "":
		return &memory.FieldError{Field: "proactive.webhook_secret", Reason: "is required with a webhook_url", Hint: "env:NAME or file:PATH; the posts are signed with it"}
	}
	if err := checkSecretRef("proactive.webhook_secret", p.WebhookSecret); err != nil {
		return err
	}
	u, err := url.Parse(p.WebhookURL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return &memory.FieldError{Field: "proactive.webhook_url", Reason: "must be an http or https URL without user, password, query or fragment", Hint: "for example https://hooks.example.com/openclawssy"}
	}
	return nil
}

// checkSecretRef refuses what is no reference to a secret. The value itself is
// never repeated: it may be the secret.
func checkSecretRef(field, ref string) error {
	if ref != "" && !strings.HasPrefix(ref, "env:") && !strings.HasPrefix(ref, "file:") {
		return &memory.FieldError{Field: field, Reason: "must be env:NAME or file:PATH", Hint: "put the secret into an environment variable and name that"}
	}
	return nil
}

func (m Model) validate() error {
	if err := checkSecretRef("model.key", m.Key); err != nil {
		return err
	}
	if err := checkBaseURL("model.base_url", m.BaseURL); err != nil {
		return err
	}
	switch {
	case m.Provider == "generic" && m.BaseURL == "":
		return &memory.FieldError{Field: "model.base_url", Reason: "is required with provider generic", Hint: "for example http://localhost:11434/v1"}
	case m.Provider != "offline" && m.Name == "":
		return &memory.FieldError{Field: "model.name", Reason: "is required with provider " + m.Provider, Hint: "the model's id at the provider"}
	}
	return nil
}
