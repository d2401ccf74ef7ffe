CREATE INDEX bands_by_number ON bands (number);

CREATE INDEX checkpoints_by_id ON checkpoints (id);

CREATE INDEX evidence_by_event ON evidence (event_id);

CREATE INDEX evidence_by_seq ON evidence (seq);

CREATE INDEX memory_items_by_superseded_by ON memory_items (superseded_by) WHERE superseded_by <> '';

CREATE INDEX memory_items_by_supersedes ON memory_items (supersedes) WHERE supersedes <> '';

CREATE INDEX memory_items_by_value ON memory_items (status, importance, confidence, updated_at);

CREATE INDEX revisions_by_seq ON revisions (seq);

CREATE INDEX revisions_by_time ON revisions (at);

CREATE INDEX revisions_reverted ON revisions (number, version) WHERE action = 'revert';

CREATE TABLE bands (
	band   INTEGER NOT NULL,
	number INTEGER NOT NULL,
	PRIMARY KEY (band, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE checkpoints (
	seq  INTEGER PRIMARY KEY, -- of its event
	id   TEXT    NOT NULL,
	at   INTEGER NOT NULL,
	body TEXT    NOT NULL, -- JSON
	sum  INTEGER NOT NULL
) STRICT;

CREATE TABLE evidence (
	number    INTEGER NOT NULL, -- of the item
	ordinal   INTEGER NOT NULL,
	event_id  TEXT    NOT NULL,
	source_id TEXT    NOT NULL,
	seq       INTEGER NOT NULL,
	quote     TEXT    NOT NULL,
	PRIMARY KEY (number, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE leases (
	name    TEXT PRIMARY KEY,
	holder  TEXT    NOT NULL,
	token   INTEGER NOT NULL, -- grows with every new holder
	expires INTEGER NOT NULL  -- 0 when given back
) STRICT;

CREATE VIRTUAL TABLE memory_fts USING fts5 (content, title, tokenize = 'unicode61');

CREATE VIRTUAL TABLE memory_fts_places USING fts5vocab (memory_fts, 'instance');

CREATE VIRTUAL TABLE memory_fts_terms USING fts5vocab (memory_fts, 'row');

CREATE TABLE memory_items (
	number        INTEGER PRIMARY KEY, -- the n of MEM-n, and the rowid of the full-text rows
	id            TEXT    NOT NULL UNIQUE,
	agent_id      TEXT    NOT NULL,
	kind          TEXT    NOT NULL,
	title         TEXT    NOT NULL,
	content       TEXT    NOT NULL,
	importance    INTEGER NOT NULL,
	confidence    REAL    NOT NULL,
	status        TEXT    NOT NULL,
	created_at    INTEGER NOT NULL,
	updated_at    INTEGER NOT NULL,
	trust         TEXT    NOT NULL,
	valid_from    INTEGER,
	valid_to      INTEGER,
	supersedes    TEXT    NOT NULL, -- id of the item that this one replaced, or ''
	superseded_by TEXT    NOT NULL,
	version       INTEGER NOT NULL,
	provisional   INTEGER NOT NULL,
	reason        TEXT    NOT NULL,
	metadata      TEXT    NOT NULL, -- JSON, or ''
	sum           INTEGER NOT NULL  -- of the item's evidence as well
, verify TEXT NOT NULL DEFAULT '', verified_at INTEGER) STRICT;

CREATE VIRTUAL TABLE memory_prefix USING fts5 (prefix, tokenize = 'unicode61');

CREATE VIRTUAL TABLE memory_prefix_places USING fts5vocab (memory_prefix, 'instance');

CREATE VIRTUAL TABLE memory_prefix_terms USING fts5vocab (memory_prefix, 'row');

CREATE TABLE parked (
	first    INTEGER PRIMARY KEY, -- range of seq, both ends included
	last     INTEGER NOT NULL,
	reason   TEXT    NOT NULL,
	attempts INTEGER NOT NULL,
	sum      INTEGER NOT NULL
) STRICT;

CREATE TABLE revisions (
	number  INTEGER NOT NULL,
	version INTEGER NOT NULL,
	seq     INTEGER NOT NULL, -- of the event that made it
	action  TEXT    NOT NULL,
	by      TEXT    NOT NULL,
	why     TEXT    NOT NULL,
	at      INTEGER NOT NULL,
	item    TEXT    NOT NULL, -- the whole version as JSON
	sum     INTEGER NOT NULL,
	PRIMARY KEY (number, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE state (
	one            INTEGER PRIMARY KEY CHECK (one = 1),
	applied_seq    INTEGER NOT NULL, -- every change up to here is in this database
	applied_file   TEXT    NOT NULL,
	applied_offset INTEGER NOT NULL,
	turns          INTEGER NOT NULL, -- turn events up to applied_seq
	cursor_seq     INTEGER NOT NULL, -- everything up to here is distilled or parked
	cursor_file    TEXT    NOT NULL,
	cursor_offset  INTEGER NOT NULL,
	passed         INTEGER NOT NULL, -- turn events up to cursor_seq
	sum            INTEGER NOT NULL
) STRICT;

CREATE TABLE suppressed (
	event_id TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID
