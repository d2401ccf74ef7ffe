-- Everything here is derived from the event log. Times are integer milliseconds UTC.

CREATE TABLE state (
	one      INTEGER PRIMARY KEY CHECK (one = 1),
	seq      INTEGER NOT NULL, -- the cursor: every event up to here is in
	file     TEXT    NOT NULL,
	offset   INTEGER NOT NULL,
	passages INTEGER NOT NULL, -- how many there are; the highest n
	epoch    INTEGER NOT NULL  -- counts changes of passages that were in already
) STRICT;

INSERT INTO state VALUES (1, 0, '', 0, 0, 0);

CREATE TABLE sessions (
	n     INTEGER PRIMARY KEY,
	id    TEXT    NOT NULL UNIQUE,
	turns INTEGER NOT NULL,
	last  INTEGER NOT NULL  -- n of the last passage of its conversation; 0 for none
) STRICT;

CREATE TABLE speakers (
	n    INTEGER PRIMARY KEY,
	name TEXT    NOT NULL UNIQUE
) STRICT;

CREATE TABLE episodes (
	n         INTEGER PRIMARY KEY, -- of EVT-n, and the rowid of the full-text rows
	event_id  TEXT    NOT NULL,
	source_id TEXT    NOT NULL,
	session   INTEGER NOT NULL,
	seq       INTEGER NOT NULL,
	part      INTEGER NOT NULL,
	turn      INTEGER NOT NULL,
	type      TEXT    NOT NULL,
	origin    TEXT    NOT NULL,
	speaker   TEXT    NOT NULL,
	text      TEXT    NOT NULL,
	caption   TEXT    NOT NULL,
	time      INTEGER NOT NULL,
	zone      INTEGER NOT NULL  -- seconds east of UTC
) STRICT;

CREATE INDEX episodes_by_event ON episodes (event_id);

-- What the ranker knows of each passage besides its words: fixed-size records,
-- so that a hundred thousand of them load in milliseconds.
CREATE TABLE features (
	block   INTEGER PRIMARY KEY,
	records BLOB    NOT NULL
) STRICT;

CREATE TABLE suppressed (
	event_id TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- Terms are made in Go (package text), so the tables hold terms, not text.
CREATE VIRTUAL TABLE m USING fts5 (terms, content = '', tokenize = 'unicode61');
CREATE VIRTUAL TABLE p USING fts5 (terms, content = '', tokenize = 'unicode61');
CREATE VIRTUAL TABLE m_rows USING fts5vocab (m, 'row');
CREATE VIRTUAL TABLE p_rows USING fts5vocab (p, 'row');
CREATE VIRTUAL TABLE m_postings USING fts5vocab (m, 'instance');
CREATE VIRTUAL TABLE p_postings USING fts5vocab (p, 'instance');
-- Without this the words of a deleted row stay in the index until it is merged.
INSERT INTO m (m, rank) VALUES ('secure-delete', 1);
INSERT INTO p (p, rank) VALUES ('secure-delete', 1);
