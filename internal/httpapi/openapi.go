package httpapi

import (
	"net/http"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/openclawssy/openclawssy/internal/access"
	"github.com/openclawssy/openclawssy/internal/intake"
	"github.com/openclawssy/openclawssy/internal/memory"
	"github.com/openclawssy/openclawssy/internal/op"
	"github.com/openclawssy/openclawssy/internal/runtime"
)

// object is a JSON object of the description.
type object = map[string]any

// describe answers with the OpenAPI 3.1 description of this server: every
// operation of the Catalog has an address of its own, with its schemas.
func (s *Server) describe(w http.ResponseWriter, r *http.Request) error {
	doc, err := s.openAPI()
	if err != nil {
		return err
	}
	return s.reply(w, r, doc)
}

func (s *Server) openAPI() (object, error) {
	takesOf, givesOf, err := s.forms()
	if err != nil {
		return nil, err
	}
	paths := object{"/healthz": object{"get": object{"operationId": "healthz", "summary": "Whether the server answers. It needs no token and tells nothing else.", "security": []any{}, "responses": answer(object{"type": "object"})}}}
	add := func(method, path string, doc object) {
		if paths[path] == nil {
			paths[path] = object{}
		}
		paths[path].(object)[strings.ToLower(method)] = doc
	}
	for _, rt := range s.table() {
		if strings.Contains(rt.path, "{op}") {
			continue
		}
		method := object{"operationId": idOf(rt.method + rt.path), "summary": rt.summary, "description": asksFor(rt.right), "parameters": parameters(rt.path), "responses": answer(givesOf[rt.path])}
		if kind := otherThanJSON[rt.path]; kind != "" {
			method["responses"] = answerAs(text(), kind)
		}
		if schema := takesOf[rt.path]; schema != nil {
			method["requestBody"] = takes(schema)
		}
		add(rt.method, rt.path, method)
	}
	for _, m := range s.Mounts {
		at, path := m.address()
		kinds := m.Answers
		if len(kinds) == 0 {
			kinds = []string{"application/json"}
		}
		method := object{"operationId": idOf(at + path), "summary": m.Summary, "description": asksFor(m.Right), "parameters": append(parameters(path), headers(m.Takes)...), "responses": answerAs(object{}, kinds...)}
		if at == http.MethodPost {
			method["requestBody"] = takes(object{"type": "object"})
		}
		add(at, path, method)
	}
	for _, o := range s.Catalog.All() {
		path := opsPath + o.Name
		method := object{"operationId": idOf(o.Name), "summary": o.Summary, "description": asksFor(access.Needed(o.Effect)) + " " + effectOf(o.Effect), "tags": []string{strings.SplitN(o.Name, ".", 2)[0]},
			"parameters": parameters(path), "requestBody": takes(o.Input), "responses": answer(o.Output)}
		add(http.MethodPost, path, method)
	}
	return object{
		"openapi": "3.1.0",
		"info":    object{"title": "Openclawssy", "version": s.Version, "description": "Memory for chat agents. Errors are problem details (RFC 9457)."},
		"servers": []any{object{"url": "/", "description": "The server that gave this description."}},
		"paths":   paths,
		"components": object{
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}},
			"responses": object{"Problem": object{"description": "An error: what is wrong, and what to do.", "content": object{"application/problem+json": object{"schema": object{
				"type": "object", "properties": object{"type": text(), "title": text(), "status": object{"type": "integer"}, "detail": text(), "hint": text(),
					"error": object{"type": "object", "properties": object{"kind": text(), "field": text(), "message": text(), "hint": text()}}}}}}}},
		},
		"security": []any{object{"token": []string{}}},
	}, nil
}

// opsPath is where operations are, each below its name.
const opsPath = "/v1/agents/{agent}/ops/"

// otherThanJSON are the media types of answers that are no JSON.
var otherThanJSON = map[string]string{"/v1/agents/{agent}/chat": "text/event-stream", "/metrics": "text/plain"}

// forms returns the schemas of what addresses take and give, by path.
func (s *Server) forms() (takes, gives map[string]any, err error) {
	takes, gives = map[string]any{}, map[string]any{
		"/api/admin/memory/{agent}": s.AdminForm,
		"/v1/agents":                object{"type": "object", "properties": object{"agents": object{"type": "array", "items": text()}}, "required": []string{"agents"}},
		"/v1/ops":                   object{"type": "object", "properties": object{"ops": object{"type": "array", "items": object{"type": "object"}}}, "required": []string{"ops"}},
		"/openapi.json":             object{"type": "object"},
	}
	if o, err := s.Catalog.Get("memory.recall"); err == nil {
		gives["/v1/agents/{agent}/recall"] = o.Output
	}
	for _, of := range []struct {
		path  string
		forms map[string]any
		typed func(*jsonschema.ForOptions) (*jsonschema.Schema, error)
	}{
		{"/v1/agents/{agent}/runs", takes, jsonschema.For[Message]}, {"/v1/agents/{agent}/chat", takes, jsonschema.For[Message]}, {"/v1/agents/{agent}/events", takes, jsonschema.For[Batch]},
		{"/v1/agents/{agent}/runs", gives, jsonschema.For[runtime.Answer]}, {"/v1/agents/{agent}/events", gives, jsonschema.For[intake.Report]},
	} {
		if of.forms[of.path], err = of.typed(nil); err != nil {
			return nil, nil, memory.Errorf(memory.ErrInternal, "describe %s: %w", of.path, err)
		}
	}
	return takes, gives, nil
}

func text() object { return object{"type": "string"} }

func asksFor(r access.Right) string { return "Needs a token with the right to " + string(r) + "." }

func effectOf(e op.Effect) string {
	switch e {
	case op.Read:
		return "It changes nothing."
	case op.Write:
		return "It adds or changes, and can be undone."
	}
	return "It removes what cannot be brought back."
}

// idOf makes a name of letters, digits and underscores.
func idOf(s string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, s), "_")
}

func parameters(path string) []any {
	list := []any{}
	if strings.Contains(path, "{agent}") {
		list = append(list, object{"name": "agent", "in": "path", "required": true, "description": "whose memory", "schema": object{"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,62}$"}})
	}
	if strings.HasSuffix(path, "/recall") {
		list = append(list,
			object{"name": "q", "in": "query", "required": true, "description": "what the user says", "schema": text()},
			object{"name": "session", "in": "query", "description": "session that the prompt would be of", "schema": text()},
			object{"name": "tokens", "in": "query", "description": "cap of the block, in tokens of 4 bytes", "schema": object{"type": "integer"}})
	}
	if strings.Contains(path, "{model}") {
		list = append(list, object{"name": "model", "in": "path", "required": true, "description": "the model's id", "schema": text()})
	}
	if strings.HasPrefix(path, opsPath) {
		list = append(list, headers([]Header{{actorHeader, "in whose name: user (if absent), assistant, agent or import"}})...)
	}
	return list
}

func takes(schema any) object {
	return object{"required": true, "content": object{"application/json": object{"schema": schema}}}
}

func headers(of []Header) []any {
	list := []any{}
	for _, h := range of {
		list = append(list, object{"name": h.Name, "in": "header", "description": h.Description, "schema": text()})
	}
	return list
}

func answer(schema any) object { return answerAs(schema, "application/json") }

// answerAs describes an answer in one of some media types.
func answerAs(schema any, kinds ...string) object {
	ok := object{"description": "Done."}
	if schema != nil {
		content := object{}
		for _, kind := range kinds {
			content[kind] = object{"schema": schema}
		}
		ok["content"] = content
	}
	return object{"200": ok, "default": object{"$ref": "#/components/responses/Problem"}}
}
