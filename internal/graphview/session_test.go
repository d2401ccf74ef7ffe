package graphview

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/openclawssy/openclawssy/internal/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var test = Session{Token: "a-token-of-this-test", Addr: "127.0.0.1:4711"}

// ask sends one request to a guarded viewer of an empty folder.
func ask(t *testing.T, h http.Handler, target string, edit func(*http.Request)) *http.Response {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Host = test.Addr
	r.Header.Set("Authorization", "Bearer "+test.Token)
	if edit != nil {
		edit(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func viewer(folder string, export any) http.Handler {
	return New(Source{
		Export: func(context.Context) (any, error) {
			if err, failed := export.(error); failed {
				return nil, err
			}
			return export, nil
		},
		Folder: func() (*os.Root, error) { return os.OpenRoot(folder) },
	}, zerolog.Nop())
}

func TestGuard(t *testing.T) {
	h := test.Guard(viewer(t.TempDir(), pottery()))
	cookie := func(value string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Del("Authorization")
			r.AddCookie(&http.Cookie{Name: "openclawssy_graph_4711", Value: value})
		}
	}
	for name, tc := range map[string]struct {
		target string
		edit   func(*http.Request)
		want   int
	}{
		"bearer":               {"/", nil, 200},
		"bearer, other case":   {"/", func(r *http.Request) { r.Header.Set("Authorization", "bearer "+test.Token) }, 200},
		"cookie":               {"/", cookie(test.Token), 200},
		"localhost":            {"/", func(r *http.Request) { r.Host = "localhost:4711" }, 200},
		"no token":             {"/", func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"wrong bearer":         {"/", func(r *http.Request) { r.Header.Set("Authorization", "Bearer a-token-of-this-tesT") }, 401},
		"start of the token":   {"/", func(r *http.Request) { r.Header.Set("Authorization", "Bearer a-token") }, 401},
		"wrong cookie":         {"/", cookie("x"), 401},
		"wrong token in URL":   {"/?token=x", func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"style without token":  {"/style.css", func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"graph without token":  {"/api/memory/graph", func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"rebound name":         {"/", func(r *http.Request) { r.Host = "evil.example:4711" }, 403},
		"other port":           {"/", func(r *http.Request) { r.Host = "127.0.0.1:80" }, 403},
		"no port":              {"/", func(r *http.Request) { r.Host = "127.0.0.1" }, 403},
		"post":                 {"/api/memory/graph", func(r *http.Request) { r.Method = http.MethodPost }, 405},
		"unknown file":         {"/handler.go", nil, 404},
		"no listing of static": {"/static/", nil, 404},
		"page by its old name": {"/memory_graph.html", nil, 200},
		"licences":             {"/LICENSES.txt", nil, 200},
	} {
		t.Run(name, func(t *testing.T) {
			got := ask(t, h, tc.target, tc.edit)
			if got.StatusCode != tc.want {
				t.Errorf("status %d, want %d", got.StatusCode, tc.want)
			}
			if p := got.Header.Get("Content-Security-Policy"); !strings.Contains(p, "default-src 'none'") || strings.Contains(p, "unsafe") {
				t.Errorf("Content-Security-Policy is %q", p)
			}
			if cors := got.Header.Get("Access-Control-Allow-Origin"); cors != "" {
				t.Errorf("other origins may read: %q", cors)
			}
		})
	}
}

// The token is exchanged for a cookie, and leaves the address bar.
func TestTokenBecomesCookie(t *testing.T) {
	h := test.Guard(viewer(t.TempDir(), pottery()))
	got := ask(t, h, "/?src=old.json&token="+test.Token, func(r *http.Request) { r.Header.Del("Authorization") })
	if got.StatusCode != http.StatusSeeOther || got.Header.Get("Location") != "/?src=old.json" {
		t.Fatalf("status %d to %q", got.StatusCode, got.Header.Get("Location"))
	}
	c := got.Cookies()
	if len(c) != 1 || !c[0].HttpOnly || c[0].SameSite != http.SameSiteStrictMode || c[0].Value != test.Token {
		t.Errorf("cookies %+v", c)
	}
	if want := "http://127.0.0.1:4711/?token=a-token-of-this-test"; test.URL() != want {
		t.Errorf("URL() = %q, want %q", test.URL(), want)
	}
}

// Defect of the reference: src read any JSON file of the user, and any origin
// could ask for it.
func TestSrcStaysInTheMemoryFolder(t *testing.T) {
	outside := t.TempDir()
	folder := filepath.Join(t.TempDir(), "memory")
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(outside, "secret.json"), `{"nodes":[{"id":"secret"}],"edges":[]}`)
	write(filepath.Join(folder, "old.json"), `{"nodes":[{"id":"kept","extra":1}],"edges":[],"token":"never shown"}`)
	write(filepath.Join(folder, "deep", "OLD.JSON"), `{"nodes":[],"edges":[]}`)
	write(filepath.Join(folder, "list.json"), `[]`)
	write(filepath.Join(folder, "other.json"), `{"password":"x"}`)
	write(filepath.Join(folder, "torn.json"), `{"nodes":[`)
	write(filepath.Join(folder, "memory.db"), `{"nodes":[],"edges":[]}`)
	if err := os.Mkdir(filepath.Join(folder, "folder.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "secret.json"), filepath.Join(folder, "link.json")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(folder, "pipe.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	big := filepath.Join(folder, "big.json")
	write(big, "")
	if err := os.Truncate(big, maxFileBytes+1); err != nil {
		t.Fatal(err)
	}
	h := test.Guard(viewer(folder, pottery()))
	for src, want := range map[string]struct {
		status int
		text   string
	}{
		"old.json":                              {200, `{"nodes":[{"id":"kept","extra":1}],"edges":[]}`},
		"deep/OLD.JSON":                         {200, `{"nodes":[],"edges":[]}`},
		"missing.json":                          {404, "no file missing.json"},
		"deep/missing.json":                     {404, "no file"},
		"":                                      {400, "must name a .json file"},
		"memory.db":                             {400, "must name a .json file"},
		"../secret.json":                        {400, "must lie in the agent's memory folder"},
		"deep/../../secret.json":                {400, "must lie in the agent's memory folder"},
		filepath.Join(outside, "secret.json"):   {400, "must lie in the agent's memory folder"},
		"link.json":                             {400, "must be a file in the agent's memory folder"},
		"folder.json":                           {400, "regular file"},
		"pipe.json":                             {400, "regular file"},
		"big.json":                              {400, "at most 150 MiB"},
		"list.json":                             {400, "src is no graph"},
		"torn.json":                             {400, "src is no graph"},
		"other.json":                            {400, "must hold the lists"},
		"old.json\x00.json":                     {400, ""},
		"file:///" + outside + "/secret.json":   {404, ""},
		"http://127.0.0.1:1/" + "x/secret.json": {404, ""},
		strings.Repeat("a", 300) + "/secret.json": {400, ""},
	} {
		t.Run(strings.ReplaceAll(src, outside, "OUTSIDE"), func(t *testing.T) {
			got := ask(t, h, "/api/memory/graph", func(r *http.Request) {
				q := r.URL.Query()
				q.Set("src", src)
				r.URL.RawQuery = q.Encode()
			})
			body, err := io.ReadAll(got.Body)
			if err != nil {
				t.Fatal(err)
			}
			if got.StatusCode != want.status || !strings.Contains(string(body), want.text) || strings.Contains(string(body), "secret\"") || strings.Contains(string(body), "never shown") {
				t.Errorf("status %d, %s; want %d, %s", got.StatusCode, body, want.status, want.text)
			}
		})
	}
}

func TestGraphErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		err    error
		status int
		want   string
	}{
		"not found":   {memory.Errorf(memory.ErrNotFound, "agent x has no memory yet"), 404, "agent x has no memory yet"},
		"damaged":     {&memory.CorruptError{Path: "graph.json", Offset: 7, Reason: "no value"}, 500, "graph.json is damaged at byte 7: no value"},
		"unavailable": {memory.Errorf(memory.ErrUnavailable, "locked"), 503, "locked"},
		"a defect":    {io.ErrUnexpectedEOF, 500, "something went wrong; the log says what"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ask(t, viewer(t.TempDir(), tc.err), "/api/memory/graph", nil)
			var doc struct{ Error, Detail string }
			if err := json.NewDecoder(got.Body).Decode(&doc); err != nil {
				t.Fatal(err)
			}
			if got.StatusCode != tc.status || doc.Detail != tc.want || doc.Error != string(memory.KindOf(tc.err)) {
				t.Errorf("status %d, %+v", got.StatusCode, doc)
			}
		})
	}
}

// The scripts of static/ are what page/build makes of the sources as they are now.
func TestPageIsBuilt(t *testing.T) {
	text, err := static.ReadFile("static/SOURCES.txt")
	if err != nil {
		t.Fatal(err)
	}
	built := 0
	for line := range strings.Lines(string(text)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		source, err := os.ReadFile(filepath.Join("page", name))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(source)); got != sum {
			t.Errorf("page/%s changed since static/ was made: run page/build", name)
		}
		built++
	}
	sources, err := filepath.Glob("page/src/*")
	if err != nil || built != len(sources)+2 {
		t.Errorf("static/ was made of %d files, there are %d: run page/build (%v)", built, len(sources)+2, err)
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	s := Session{Token: "t", Addr: l.Addr().String()}
	go func() { ended <- Serve(ctx, l, s.Guard(viewer(t.TempDir(), pottery()))) }()
	r, err := http.Get(s.URL()) // no cookie jar: the redirect arrives without the token
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if r.StatusCode != http.StatusUnauthorized {
		t.Errorf("status %d", r.StatusCode)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	http.DefaultClient.CloseIdleConnections()
}
