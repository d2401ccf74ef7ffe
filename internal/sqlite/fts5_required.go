//go:build !sqlite_fts5 && !fts5

package sqlite

// SQLite's full-text index is compiled in by a build tag. Without it every
// search would fail, and only at run time; so the build stops here instead.
var _ = build_with_tags_sqlite_fts5__type_make_build_or_go_build_tags_sqlite_fts5
