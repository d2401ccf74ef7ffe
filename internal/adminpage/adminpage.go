// Package adminpage is the page for people: what an agent remembers, why, and how
// its memory is. It is a few static files that ask the HTTP interface with the
// token that the person enters; the files hold no data.
package adminpage

import (
	"embed"
	"io/fs"
	"net/http"
)

// uplot.js and uplot.css are uPlot 1.6.32, as published; LICENSES.txt is its licence.
//
//go:embed static
var static embed.FS

// policy lets the page load its own files and ask its own server, run no inline
// script, and make no markup from text: what is remembered is shown as text only.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Handler serves the files below prefix, which begins and ends in a slash.
func Handler(prefix string) http.Handler {
	files, err := fs.Sub(static, "static")
	if err != nil { // the name above is embedded
		panic(err)
	}
	serve := http.StripPrefix(prefix, http.FileServerFS(files))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-cache")
		serve.ServeHTTP(w, r)
	})
}
