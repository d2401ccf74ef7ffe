// Package graphview shows an agent's graph in a browser: one embedded page, the
// JSON that it draws, and a session that lets only the person in who started it.
//
// The page's sources are in page/, with the script that makes static/ from them.
package graphview
