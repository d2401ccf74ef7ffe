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
	bodies := map[string]any{}
	for path, typed := range map[string]func() (*jsonschema.Schema, error){
		"/v1/agents/{agent}/runs":   func() (*jsonschema.Schema, error) { return jsonschema.For[Message](nil) },
		"/v1/agents/{agent}/chat":   func() (*jsonschema.Schema, error) { return jsonschema.For[Message](nil) },
		"/v1/agents/{agent}/events": func() (*jsonschema.Schema, error) { return jsonschema.For[Batch](nil) },
	} {
		schema, err := typed()
		if err != nil {
			return nil, memory.Errorf(memory.ErrInternal, "describe %s: %w", path, err)
		}
		bodies[path] = schema
	}
	answers := map[string]any{}
	for path, typed := range map[string]func() (*jsonschema.Schema, error){
		"/v1/agents/{agent}/runs":   func() (*jsonschema.Schema, error) { return jsonschema.For[runtime.Answer](nil) },
		"/v1/agents/{agent}/events": func() (*jsonschema.Schema, error) { return jsonschema.For[intake.Report](nil) },
	} {
		schema, err := typed()
		if err != nil {
			return nil, memory.Errorf(memory.ErrInternal, "describe %s: %w", path, err)
		}
		answers[path] = schema
	}
	paths := object{"/healthz": object{"get": object{"operationId": "healthz", "summary": "Whether the server answers. It needs no token and tells nothing else.", "security": []any{}, "responses": answer(object{"type": "object"})}}}
	for _, rt := range s.table() {
		if strings.Contains(rt.path, "{op}") {
			continue
		}
		method := object{"operationId": idOf(rt.method + rt.path), "summary": rt.summary, "description": asksFor(rt.right), "parameters": parameters(rt.path), "responses": answer(answers[rt.path])}
		if schema := bodies[rt.path]; schema != nil {
			method["requestBody"] = takes(schema)
		}
		paths[rt.path] = object{strings.ToLower(rt.method): method}
	}
	for _, o := range s.Catalog.All() {
		path := "/v1/agents/{agent}/ops/" + o.Name
		method := object{"operationId": idOf(o.Name), "summary": o.Summary, "description": asksFor(access.Needed(o.Effect)) + " " + effectOf(o.Effect), "tags": []string{strings.SplitN(o.Name, ".", 2)[0]},
			"parameters": parameters(path), "requestBody": takes(o.Input), "responses": answer(o.Output)}
		paths[path] = object{"post": method}
	}
	return object{
		"openapi": "3.1.0",
		"info":    object{"title": "Openclawssy", "version": s.Version, "description": "Memory for chat agents. Errors are problem details (RFC 9457)."},
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
	return list
}

func takes(schema any) object {
	return object{"required": true, "content": object{"application/json": object{"schema": schema}}}
}

func answer(schema any) object {
	ok := object{"description": "Done."}
	if schema != nil {
		ok["content"] = object{"application/json": object{"schema": schema}}
	}
	return object{"200": ok, "default": object{"$ref": "#/components/responses/Problem"}}
}
