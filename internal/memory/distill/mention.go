package distill

import (
	"slices"
	"strings"

	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/memory/text"
)

// The kinds of thing that a Mention names.
const (
	Person  = "person"
	Place   = "place"
	Project = "project"
	Tool    = "tool"
)

// Mention is a name that stands in an item.
type Mention struct {
	Kind string // Person, Place, Project or Tool; "" where the text does not tell
	Name string // as it is written, without a possessive ending
}

// Mentions returns the names in an item's content, in their order, each once: of
// what it says, not of what it replaced. A kind is given only where the words
// around a name tell it, or the name is that of a well-known tool; nothing is
// taken from anywhere else, so the same item always has the same mentions.
func Mentions(it memory.Item) []Mention {
	var found []Mention
	for _, s := range sentences(bodyOf(it.Content)) {
		if !s.pasted {
			found = append(found, mentionsIn(s.words)...)
		}
	}
	return onlyOne(it.Kind, united(found))
}

// united drops repetitions, and what is not told of a name that is told of
// elsewhere in the item.
func united(all []Mention) []Mention {
	var out []Mention
	for _, m := range all {
		known := slices.IndexFunc(out, func(o Mention) bool { return o.Name == m.Name && (o.Kind == m.Kind || o.Kind == "" || m.Kind == "") })
		switch {
		case known < 0:
			out = append(out, m)
		case out[known].Kind == "":
			out[known].Kind = m.Kind
		}
	}
	return out
}

// onlyOne gives the only name in an item about a person or a project that kind.
func onlyOne(kind string, all []Mention) []Mention {
	kinds := map[string]string{memory.KindPerson: Person, memory.KindProject: Project}
	if len(all) == 1 && all[0].Kind == "" {
		all[0].Kind = kinds[kind]
	}
	return all
}

func mentionsIn(words []word) []Mention {
	var out []Mention
	head := true
	for i := 0; i < len(words); {
		n := nameAt(words, i, head)
		w := words[max(i, i+n-1)]
		head = strings.ContainsAny(w.after, ".!?") || head && n == 0 && leadIns[w.lower] && w.after != ""
		switch {
		case n > 0:
			s := nameSpan{words, i, i + n}
			out = append(out, Mention{s.kind(), s.name()})
			i += n
		default:
			if tools[words[i].lower] {
				out = append(out, Mention{Tool, words[i].text})
			}
			i++
		}
	}
	return out
}

// nameAt returns how many words the name has that begins at a word; 0 for none.
func nameAt(words []word, i int, head bool) int {
	if !namesSomething(words, i, head) {
		return 0
	}
	n := 1
	for i+n < len(words) && words[i+n-1].after == "" && !isPossessive(words[i+n-1]) {
		next := i + n
		if particles[words[next].lower] && next+1 < len(words) && words[next].after == "" && namesSomething(words, next+1, false) {
			n += 2
			continue
		}
		if !namesSomething(words, next, false) {
			break
		}
		n++
	}
	return n
}

// namesSomething reports a word that is a name, or part of one: no ticket
// number, no path, not the user, and no word for what somebody or something is.
func namesSomething(words []word, i int, head bool) bool {
	w := words[i]
	base := baseName(w.lower)
	if base == "user" || kin[base] || calendarWords[strings.TrimSuffix(base, "s")] || roles[base] && !titles[w.lower] || projectWords[base] || titles[w.lower] && head && i+1 == len(words) {
		return false
	}
	if titles[w.lower] && i+1 < len(words) && isName(words, i+1, false) {
		return true
	}
	if head && i+1 < len(words) && w.after == "" && personVerbs[words[i+1].lower] && !imperativeVerbs[base] && !questionWords[w.lower] && !auxiliaries[w.lower] {
		head = false // it is who does that
	}
	return isName(words, i, head) && (!w.code || tools[base])
}

func isPossessive(w word) bool { return baseName(w.lower) != w.lower }

var (
	titles    = wordSet(`mr mrs ms dr prof professor herr frau señor señora`)
	particles = wordSet(`of de van von der den del la le du di`)
)

// nameSpan is a name within a sentence.
type nameSpan struct {
	words    []word
	from, to int
}

// name is the name as it is written, without a title and a possessive ending.
func (s nameSpan) name() string {
	parts := make([]string, 0, s.to-s.from)
	for i, w := range s.words[s.from:s.to] {
		if i == 0 && titles[w.lower] && s.to-s.from > 1 {
			continue
		}
		parts = append(parts, w.text)
	}
	last := &parts[len(parts)-1]
	*last = (*last)[:len(*last)-len(s.words[s.to-1].lower)+len(baseName(s.words[s.to-1].lower))]
	return strings.Join(parts, " ")
}

// before and behind return a word near the name in lower case; "" for none.
func (s nameSpan) before(n int) string {
	if at := s.from - n; at >= 0 && !strings.ContainsAny(s.words[at].after, ".!?;") {
		return s.words[at].lower
	}
	return ""
}

func (s nameSpan) behind(n int) string {
	if at := s.to + n - 1; at < len(s.words) && !strings.ContainsAny(s.words[at-1].after, ".!?;:") {
		return s.words[at].lower
	}
	return ""
}

// near reports whether one of the n words before the name, or behind it for a
// negative n, is in a set.
func (s nameSpan) near(n int, sets ...map[string]bool) bool {
	look, n := s.before, n
	if n < 0 {
		look, n = s.behind, -n
	}
	for i := 1; i <= n; i++ {
		if slices.ContainsFunc(sets, func(set map[string]bool) bool { return set[baseName(look(i))] }) {
			return true
		}
	}
	return false
}

// kind tells what the words around the name make it.
func (s nameSpan) kind() string {
	switch {
	case tools[strings.Join(text.Words(s.name()), " ")], tools[strings.ToLower(s.name())]:
		return Tool
	case s.isPerson():
		return Person
	case s.isProject():
		return Project
	case s.isPlace():
		return Place
	case s.isTool():
		return Tool
	}
	return ""
}

func (s nameSpan) isPerson() bool {
	isA := s.behind(1) == "is" || s.behind(1) == "was" || s.behind(1) == "are"
	called := s.before(1) == "called" || s.before(1) == "named"
	linked := s.before(1) == "is" || s.before(1) == "was"
	apart := strings.HasPrefix(s.words[s.to-1].after, ",") && owners[baseName(s.behind(1))]
	owns := isPossessive(s.words[s.to-1])
	switch {
	case titles[s.words[s.from].lower] && s.to-s.from > 1:
		return true
	case s.near(1, kin, roles), called && s.near(5, kin, roles) && !s.near(5, pets, projectWords), linked && s.near(2, kin, roles, people):
		return true
	case s.before(1) == "name's", linked && s.before(2) == "name":
		return true
	case personVerbs[s.behind(1)], met[s.before(1)]:
		return true
	case (isA || owns) && personalDoing[s.behind(2)], owns && personalDoing[s.behind(1)]:
		return true
	case isA && (owners[baseName(s.behind(2))] || articles[s.behind(2)]) && s.near(-5, kin, roles):
		return true
	}
	return apart && s.near(-3, kin, roles, people) || owns && s.near(-1, kin, possessions)
}

func (s nameSpan) isProject() bool {
	called := s.before(1) == "called" || s.before(1) == "named" || s.before(1) == "codenamed"
	isOurs := s.behind(1) == "is" && (owners[baseName(s.behind(2))] || articles[s.behind(2)])
	return s.near(1, projectWords) || s.near(-1, projectWords) || called && s.near(6, projectWords) || isOurs && s.near(-6, projectWords)
}

func (s nameSpan) isPlace() bool {
	if !placeWords[s.before(1)] {
		return visits[s.before(1)]
	}
	if s.near(8, stays) {
		return true
	}
	return s.near(3, moves) && !slices.ContainsFunc(s.words, func(w word) bool { return ourselves[w.lower] })
}

func (s nameSpan) isTool() bool {
	if uses[s.before(1)] { // but not "use British spelling"
		return s.words[s.to-1].after != "" || s.behind(1) == "" || functionWords[s.behind(1)]
	}
	return toolWords[s.before(1)] && builds[s.before(2)]
}

// The words that tell what a name names. Each table is a closed class, or a list
// of common words of one meaning.
var (
	owners        = wordSet(`my our his her their your user mein meine unser unsere mi nuestro nuestra`)
	articles      = wordSet(`a an the`)
	people        = wordSet(`postdoc person contact guy woman man girl boy colleague`)
	met           = wordSet(`met meet meets invited told asked emailed texted married hired phoned thanked`)
	possessions   = wordSet(`birthday wedding house flat apartment parents idea opinion`)
	personVerbs   = wordSet(`leads led says said told tells wrote thinks thought knows wants wanted likes liked loves loved hates prefers lives lived works worked studies studied teaches agreed agrees promised asked joined married speaks plays eats drinks owns supervises manages organises organizes does wohnt arbeitet spricht vive trabaja`)
	personalDoing = wordSet(`leaving coming moving joining visiting organising organizing travelling traveling learning studying teaching planning getting pregnant married retiring`)
	projectWords  = wordSet(`project projects app codename repo repository initiative campaign startup business product platform website projekt proyecto`)
	placeWords    = wordSet(`in to from near at into around through nach aus bei en`)
	stays         = wordSet(`live lives lived living born grew based job student native master's phd degree fly flies flew flying flight travel travels travelled traveled travelling traveling trip holiday vacation
		train ferry stuck office offices flat apartment hotel hostel stay stays stayed staying honeymoon conference wedding university campus school hospital
		wohne wohnt wohnen lebt leben vivo vive viven`)
	moves     = wordSet(`moved moving move moves went goes going arrived returned returning commutes commute`)
	visits    = wordSet(`visit visits visited visiting`)
	ourselves = wordSet(`we we're we've our us`)
	uses      = wordSet(`use uses using used install installs installed installing benutzt nutzt nutzen usa usamos`)
	toolWords = wordSet(`in with on to from via over by through`)
	builds    = wordSet(`written built build runs run running deployed deploy deploys hosted migrated migrate migrating switched switching upgraded logged synced backed stored powered`)

	// tools are well-known by these names, in any case.
	tools = wordSet(`jenkins gitlab github bitbucket circleci buildkite teamcity rabbitmq kafka nats jetstream redis memcached pulsar mqtt sqs postgres postgresql
		mysql sqlite mongodb mariadb clickhouse duckdb cassandra dynamodb elasticsearch opensearch aws azure gcp hetzner heroku netlify vercel digitalocean cloudflare
		docker kubernetes podman terraform ansible helm nginx caddy python golang kotlin javascript typescript haskell java c++ node.js next.js react svelte vue angular
		django rails laravel flask fastapi htmx tailwind webpack vite slack discord notion jira confluence trello figma excel photoshop vscode vim neovim emacs
		intellij xcode unity godot unreal bevy blender grafana prometheus sentry datadog okta keycloak auth0 twilio stripe paypal shopify etsy wordpress
		zoom dropbox obsidian zotero latex matlab numpy pandas pytorch tensorflow jupyter ollama chatgpt android ios linux ubuntu debian windows macos testcontainers`)
)
