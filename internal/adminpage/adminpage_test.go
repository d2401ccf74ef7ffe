package adminpage

import (
	"io/fs"
	"mime"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// ask returns the answer to a GET.
func ask(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	rec := httptest.NewRecorder()
	req := httptest.NewRequest("GET", "/", nil)
	req.URL.Path = path
	h.ServeHTTP(rec, req)
	return rec
}

// files returns the names of what is embedded, without their folder.
func files(t *testing.T) []string {
	t.Helper()
	names, err := fs.Glob(static, "static/*")
	if err != nil || len(names) < 8 {
		t.Fatalf("%v %v", names, err)
	}
	for i, name := range names {
		names[i] = path.Base(name)
	}
	return names
}

func read(t *testing.T, name string) string {
	t.Helper()
	raw, err := static.ReadFile("static/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestEveryFileIsServedUnderThePolicy, in a type that a browser that is told not to
// guess takes.
func TestEveryFileIsServedUnderThePolicy(t *testing.T) {
	h := Handler("/admin/")
	for _, name := range append(files(t), "") {
		rec := ask(t, h, "/admin/"+name)
		if name == "index.html" { // is at the folder's own address
			if rec.Code != http.StatusMovedPermanently {
				t.Errorf("%s: %d", name, rec.Code)
			}
			continue
		}
		if rec.Code != http.StatusOK {
			t.Errorf("%q: %d", name, rec.Code)
		}
		for header, want := range map[string]string{"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin", "Cache-Control": "no-cache"} {
			if got := rec.Header().Get(header); got != want {
				t.Errorf("%q: %s is %q", name, header, got)
			}
		}
		kind, _, err := mime.ParseMediaType(rec.Header().Get("Content-Type"))
		want := map[string]string{"": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".txt": "text/plain"}[path.Ext(name)]
		if err != nil || kind != want {
			t.Errorf("%q: %s, want %s, %v", name, kind, want, err)
		}
	}
	for _, name := range []string{"/admin/../adminpage.go", "/admin/static/main.js", "/admin/%2e%2e/adminpage.go", "/admin//etc/passwd", "/admin/..\\adminpage.go", "/admin/main.js\x00", "/admin/nothing"} {
		if rec := ask(t, h, name); rec.Code == http.StatusOK {
			t.Errorf("%q is served", name)
		}
	}
}

// TestThePolicyIsStrict: nothing but the page's own files, and no text becomes script
// or markup.
func TestThePolicyIsStrict(t *testing.T) {
	rules := map[string][]string{}
	for rule := range strings.SplitSeq(policy, ";") {
		words := strings.Fields(rule)
		rules[words[0]] = words[1:]
	}
	for name, want := range map[string]string{"default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "connect-src": "'self'", "base-uri": "'none'", "form-action": "'none'", "frame-ancestors": "'none'",
		"require-trusted-types-for": "'script'", "trusted-types": "'none'"} {
		if !slices.Equal(rules[name], []string{want}) {
			t.Errorf("%s is %v", name, rules[name])
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") || strings.Contains(policy, "http") {
		t.Errorf("the policy allows too much: %s", policy)
	}
}

// TestThePageKeepsToThePolicy: a browser refuses what breaks it, and the page would
// silently lack it.
func TestThePageKeepsToThePolicy(t *testing.T) {
	names := files(t)
	root, err := html.Parse(strings.NewReader(read(t, "index.html")))
	if err != nil {
		t.Fatal(err)
	}
	loads := 0
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if n.Data == "style" || n.Data == "script" && n.FirstChild != nil || n.Data == "base" || n.Data == "iframe" {
			t.Errorf("<%s> has content of its own", n.Data)
		}
		for _, a := range n.Attr {
			switch {
			case strings.HasPrefix(a.Key, "on"), a.Key == "style":
				t.Errorf("<%s %s> stands in the markup", n.Data, a.Key)
			case a.Key == "src", a.Key == "href" && n.Data == "link":
				if loads++; !slices.Contains(names, a.Val) {
					t.Errorf("<%s> loads %q, which is not there", n.Data, a.Val)
				}
			}
		}
	}
	if loads < 5 {
		t.Errorf("the page loads %d files", loads)
	}
	// What makes markup or script of text. uplot.js is another's, and draws on a canvas.
	makes := regexp.MustCompile(`\b(innerHTML|outerHTML|insertAdjacentHTML|DOMParser|createContextualFragment|srcdoc|eval|importScripts)\b|document\.write|new Function|setTimeout\(["'` + "`" + `]|javascript:`)
	imports := regexp.MustCompile(`\b(?:from|import)\s*\(?"([^"]+)"`)
	elsewhere := regexp.MustCompile(`["'(]\s*(https?:)?//[a-z]`)
	imported := 0
	for _, name := range names {
		text := read(t, name)
		if path.Ext(name) == ".js" {
			if found := makes.FindString(text); found != "" {
				t.Errorf("%s: %s", name, found)
			}
			if strings.Contains(text, "sourceMappingURL") {
				t.Errorf("%s names a file that is not there", name)
			}
		}
		if path.Ext(name) == ".js" && name != "uplot.js" {
			for _, m := range imports.FindAllStringSubmatch(text, -1) {
				if imported++; !slices.Contains(names, strings.TrimPrefix(m[1], "./")) {
					t.Errorf("%s imports %q, which is not there", name, m[1])
				}
			}
			if strings.Contains(text, "localStorage") || strings.Contains(text, "document.cookie") {
				t.Errorf("%s keeps something for longer than its tab", name)
			}
		}
		if ext := path.Ext(name); (ext == ".js" || ext == ".css") && elsewhere.MatchString(text) {
			t.Errorf("%s names another server: %s", name, elsewhere.FindString(text))
		}
	}
	if imported < 5 {
		t.Errorf("%d imports were looked at", imported)
	}
}
