package llm

import "slices"

// Preset is what is known of a provider.
type Preset struct {
	Name    Provider
	BaseURL string // "" where there is no usual one
	KeyName string // the usual variable of the key; "" where none is needed
	Model   string // an example of a model's id
}

// Presets lists the providers. All speak the API of OpenAI; the addresses are
// those of their own documentation.
var Presets = []Preset{
	{OpenAI, OpenAIBaseURL, "OPENAI_API_KEY", "gpt-4o-mini"},
	{"openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "openai/gpt-4o-mini"},
	{"requesty", "https://router.requesty.ai/v1", "REQUESTY_API_KEY", "openai/gpt-4o-mini"},
	{"zai", "https://api.z.ai/api/paas/v4", "ZAI_API_KEY", "glm-4.6"},
	{"ollama", "http://localhost:11434/v1", "", "llama3.2"},
	{Generic, "", "", ""},
}

// PresetOf returns what is known of a provider.
func PresetOf(p Provider) (Preset, bool) {
	i := slices.IndexFunc(Presets, func(known Preset) bool { return known.Name == p })
	if i < 0 {
		return Preset{}, false
	}
	return Presets[i], true
}

// BaseURL returns where a provider is asked: own where that is set, else its
// usual place; "" if there is none.
func BaseURL(p Provider, own string) string {
	if own != "" {
		return own
	}
	known, _ := PresetOf(p)
	return known.BaseURL
}
