-- Vectors of passages and items. An id is 2n for passage EVT-n and 2n+1 for item
-- MEM-n; a hash is the first 16 bytes of the SHA-256 of the text that is embedded.
-- Times are integer milliseconds UTC.

CREATE TABLE state (
	one       INTEGER PRIMARY KEY CHECK (one = 1),
	passages  INTEGER NOT NULL, -- texts of all passages up to here are noted
	epoch     INTEGER NOT NULL, -- of the archive when they were
	item_seq  INTEGER NOT NULL, -- texts of all items that changes up to here touched are noted
	item_id   TEXT    NOT NULL,
	version   INTEGER NOT NULL, -- counts what is added
	removals  INTEGER NOT NULL  -- counts what is taken away
) STRICT;

INSERT INTO state VALUES (1, 0, 0, 0, '', 0, 0);

-- What should have a vector. What is missing is what stands here and not there.
CREATE TABLE texts (
	id   INTEGER PRIMARY KEY,
	hash BLOB NOT NULL
) STRICT;

CREATE TABLE models (
	n       INTEGER PRIMARY KEY,
	id      TEXT    NOT NULL UNIQUE,
	dims    INTEGER NOT NULL,
	made    INTEGER NOT NULL,
	ready   INTEGER NOT NULL, -- 1 once every text had a vector
	body    BLOB,             -- of a built-in model: the model itself
	learned INTEGER NOT NULL, -- of a built-in model: passages that it was trained on
	failure TEXT    NOT NULL, -- what went wrong last; '' for nothing
	since   INTEGER NOT NULL, -- when it began to go wrong
	failed  INTEGER NOT NULL  -- when it last did
) STRICT;

-- The short forms stand beside each other, so that one pass over them is cheap;
-- the exact ones stand apart.
CREATE TABLE codes (
	model   INTEGER NOT NULL,
	id      INTEGER NOT NULL,
	version INTEGER NOT NULL,
	hash    BLOB    NOT NULL,
	cut     INTEGER NOT NULL, -- 1: of the beginning of the text
	code    BLOB    NOT NULL, -- scan.AppendCode
	PRIMARY KEY (model, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX codes_by_hash ON codes (model, hash);
CREATE INDEX codes_by_version ON codes (model, version);

CREATE TABLE floats (
	model  INTEGER NOT NULL,
	id     INTEGER NOT NULL,
	floats BLOB    NOT NULL, -- scan.AppendFloats, of length 1
	PRIMARY KEY (model, id)
) STRICT, WITHOUT ROWID;

-- Texts that a model does not take: not asked again for the same text.
CREATE TABLE refused (
	model  INTEGER NOT NULL,
	id     INTEGER NOT NULL,
	hash   BLOB    NOT NULL,
	reason TEXT    NOT NULL,
	PRIMARY KEY (model, id)
) STRICT, WITHOUT ROWID;
