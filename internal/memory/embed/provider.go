package embed

import "slices"

// Provider is the flavour of the API that an endpoint speaks.
type Provider string

// The providers that are asked over the network.
const (
	OpenAI     Provider = "openai"
	OpenRouter Provider = "openrouter"
	Mistral    Provider = "mistral"
	Gemini     Provider = "gemini"
	Voyage     Provider = "voyage"
	Generic    Provider = "generic" // Ollama, llama.cpp, vLLM, LM Studio and the like
)

// Values of the configuration that name no network provider.
const (
	LSA  = "lsa"  // the built-in model
	Off  = "off"  // no vectors at all
	Auto = "auto" // the first of a list with a key, else LSA
)

// Usual is what holds of a provider where the configuration says nothing else.
type Usual struct {
	BaseURL    string
	Model      string
	Dimensions int      // that are asked for; 0 for the model's own
	KeyNames   []string // environment variables that hold the key, the first that is set counts
}

var usual = map[Provider]Usual{
	OpenAI:     {"https://api.openai.com/v1", "text-embedding-3-small", 0, []string{"OPENAI_API_KEY"}},
	OpenRouter: {"https://openrouter.ai/api/v1", "openai/text-embedding-3-small", 0, []string{"OPENROUTER_API_KEY"}},
	Mistral:    {"https://api.mistral.ai/v1", "mistral-embed", 0, []string{"MISTRAL_API_KEY"}},
	Gemini:     {"https://generativelanguage.googleapis.com/v1beta", "gemini-embedding-001", 768, []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}},
	Voyage:     {"https://api.voyageai.com/v1", "voyage-4", 0, []string{"VOYAGE_API_KEY"}},
	Generic:    {},
}

// UsualOf returns what is usual of a provider, and whether there is such a one.
func UsualOf(p Provider) (Usual, bool) {
	u, known := usual[p]
	return u, known
}

// KeyName returns the first of the provider's variables that is set; "" for none.
func (u Usual) KeyName(getenv func(string) string) string {
	at := slices.IndexFunc(u.KeyNames, func(name string) bool { return getenv(name) != "" })
	if at < 0 {
		return ""
	}
	return u.KeyNames[at]
}

// autoOrder is the order in which OpenClaw looks for a remote provider.
var autoOrder = []Provider{OpenAI, Gemini, Voyage, Mistral}

// First returns the first provider of OpenClaw's order whose key is in the
// environment, false where there is none.
func First(getenv func(string) string) (Provider, bool) {
	at := slices.IndexFunc(autoOrder, func(p Provider) bool { return usual[p].KeyName(getenv) != "" })
	if at < 0 {
		return "", false
	}
	return autoOrder[at], true
}

// model is what is known of a model by its name.
type model struct {
	dims  int // of its vectors where none are asked for
	input int // tokens of one text at most
}

// models are those of the providers' own documentation.
var models = map[string]model{
	"text-embedding-3-small": {1536, 8191},
	"text-embedding-3-large": {3072, 8191},
	"text-embedding-ada-002": {1536, 8191},
	"gemini-embedding-001":   {3072, 2048},
	"mistral-embed":          {1024, 8192},
	"voyage-4":               {1024, 32000},
	"voyage-4-large":         {1024, 32000},
	"voyage-4-lite":          {1024, 32000},
	"voyage-3.5":             {1024, 32000},
	"voyage-3.5-lite":        {1024, 32000},
	"voyage-3-large":         {1024, 32000},
}

// unknownInput is how many tokens of a text a model is given that nothing is
// known of: what the smaller of the local ones take.
const unknownInput = 512
