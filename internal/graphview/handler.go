package graphview

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/rs/zerolog"

	"github.com/openclawssy/openclawssy/internal/memory"
)

//go:embed static
var static embed.FS

// maxFileBytes is the largest file that src may name: what the graph store
// itself reads at most.
const maxFileBytes = 150 << 20

// policy lets the page load its own files and nothing else, run no inline
// script, and make no markup from text. The one script that code may start is
// the layout's.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; worker-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types layout"

// Source is the graph of one agent. It is used by several requests at once.
type Source struct {
	// Export returns what is written as JSON: {"nodes": […], "edges": […]}. An
	// agent without a graph has an empty one.
	Export func(ctx context.Context) (any, error)
	// Folder opens the agent's memory folder; ErrNotFound where it has none.
	Folder func() (*os.Root, error)
}

// New returns the page at / and /memory_graph.html and the graph at
// /api/memory/graph. The page's addresses are relative, so that it may be
// mounted below a path that ends in a slash. It checks no token: put it behind
// Session.Guard or the server's own check.
//
// /api/memory/graph?src=NAME.json reads a graph from a file in the agent's
// memory folder instead: 400 for any other name or place, 404 where there is
// none. Errors are {"error": kind, "detail": text}.
func New(src Source, log zerolog.Logger) http.Handler {
	h := &handler{src: src, log: log}
	mux := http.NewServeMux()
	addFiles(mux)
	mux.HandleFunc("GET /memory_graph.html", file("page.html"))
	mux.HandleFunc("GET /api/memory/graph", h.graph)
	return secure(mux)
}

// Page returns the page alone, at / : it holds no data. With ?agent=NAME it asks
// ../v1/agents/NAME/graph, which Graph answers, with the token that the admin page
// keeps in the same tab.
func Page() http.Handler {
	mux := http.NewServeMux()
	addFiles(mux)
	return secure(mux)
}

// Graph returns what answers with the graph that export makes. It checks no token.
func Graph(export func(*http.Request) (any, error), log zerolog.Logger) http.Handler {
	return secure(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := &handler{log: log}
		doc, err := export(r)
		if err != nil {
			h.fail(w, err)
			return
		}
		h.reply(w, http.StatusOK, doc)
	}))
}

func addFiles(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", file("page.html"))
	for _, name := range []string{"main.js", "layout.js", "style.css", "icon.svg", "LICENSES.txt"} {
		mux.HandleFunc("GET /"+name, file(name))
	}
}

// secure sets what holds for every answer.
func secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

type handler struct {
	src Source
	log zerolog.Logger
}

func file(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, static, "static/"+name) }
}

func (h *handler) graph(w http.ResponseWriter, r *http.Request) {
	export := h.src.Export
	if query := r.URL.Query(); query.Has("src") {
		export = func(context.Context) (any, error) { return h.read(query.Get("src")) }
	}
	doc, err := export(r.Context())
	if err != nil {
		h.fail(w, err)
		return
	}
	h.reply(w, http.StatusOK, doc)
}

// read reads a graph from a file of the agent's memory folder.
func (h *handler) read(name string) (doc any, err error) {
	refuse := func(reason string) error { return &memory.FieldError{Field: "src", Reason: reason} }
	switch {
	case !strings.EqualFold(path.Ext(name), ".json"):
		return nil, refuse("must name a .json file")
	case !filepath.IsLocal(filepath.FromSlash(name)):
		return nil, refuse("must lie in the agent's memory folder")
	}
	folder, err := h.src.Folder()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	f, err := folder.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a named pipe must not hold the request
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, memory.Errorf(memory.ErrNotFound, "no file %s in the agent's memory folder", name)
	case errors.Is(err, fs.ErrPermission):
		return nil, memory.Errorf(memory.ErrDenied, "open src: %w", err)
	case err != nil: // most of all a link that leads out
		return nil, refuse("must be a file in the agent's memory folder")
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	st, err := f.Stat()
	switch {
	case err != nil:
		return nil, memory.Errorf(memory.ErrUnavailable, "open src: %w", err)
	case !st.Mode().IsRegular():
		return nil, refuse("must name a regular file")
	case st.Size() > maxFileBytes:
		return nil, refuse(fmt.Sprintf("must have at most %d MiB", maxFileBytes>>20))
	}
	return parse(f)
}

// parse takes the two lists of a graph and leaves everything else behind.
func parse(r io.Reader) (any, error) {
	var doc struct {
		Nodes []json.RawMessage `json:"nodes"`
		Edges []json.RawMessage `json:"edges"`
	}
	if err := json.NewDecoder(io.LimitReader(r, maxFileBytes)).Decode(&doc); err != nil {
		return nil, memory.Errorf(memory.ErrInvalid, "src is no graph: %w", err)
	}
	if doc.Nodes == nil || doc.Edges == nil {
		return nil, &memory.FieldError{Field: "src", Reason: "must hold the lists nodes and edges"}
	}
	return doc, nil
}

var statusOf = map[memory.Kind]int{
	memory.ErrInvalid: http.StatusBadRequest, memory.ErrNotFound: http.StatusNotFound, memory.ErrConflict: http.StatusConflict,
	memory.ErrDenied: http.StatusForbidden, memory.ErrUnavailable: http.StatusServiceUnavailable, memory.ErrCorrupt: http.StatusInternalServerError,
}

// fail answers with the error's kind, and logs what is no business of the
// caller's.
func (h *handler) fail(w http.ResponseWriter, err error) {
	kind, detail := memory.KindOf(err), err.Error()
	status, known := statusOf[kind]
	if !known {
		status, detail = http.StatusInternalServerError, "something went wrong; the log says what"
		h.log.Error().Err(err).Msg("show the graph")
	}
	h.reply(w, status, map[string]string{"error": string(kind), "detail": detail})
}

func (h *handler) reply(w http.ResponseWriter, status int, doc any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(doc); err != nil { // the status is sent; most often the browser went away
		h.log.Debug().Err(err).Msg("send the graph")
	}
}
