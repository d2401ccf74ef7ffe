-- The contract's tables, as the reference makes them. A database that the
-- reference made has them already; adopt has added metadata_json if need be.
CREATE TABLE IF NOT EXISTS memory_records (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	namespace TEXT NOT NULL,
	record_kind TEXT NOT NULL,
	record_id TEXT NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	ttl_seconds INTEGER NULL,
	payload_json TEXT NOT NULL,
	metadata_json TEXT NULL
);

CREATE TABLE IF NOT EXISTS ainl_memory_patterns (
	name TEXT PRIMARY KEY,
	content_hash TEXT NOT NULL,
	ir_json TEXT NOT NULL,
	updated_at TEXT NOT NULL
);

-- Two processes of the reference can have made two records of one key. The one
-- that was changed last stays; the others are set aside and reported.
CREATE TABLE memory_record_duplicates (
	id INTEGER PRIMARY KEY,
	namespace TEXT NOT NULL,
	record_kind TEXT NOT NULL,
	record_id TEXT NOT NULL,
	created_at TEXT NOT NULL,
	updated_at TEXT NOT NULL,
	ttl_seconds ANY,
	payload_json TEXT NOT NULL,
	metadata_json TEXT
) STRICT;

INSERT INTO memory_record_duplicates
SELECT id, namespace, record_kind, record_id, created_at, updated_at, ttl_seconds, payload_json, metadata_json FROM (
	SELECT *, row_number() OVER (PARTITION BY namespace, record_kind, record_id ORDER BY julianday(updated_at) DESC NULLS LAST, id DESC) AS place
	FROM memory_records)
WHERE place > 1;

DELETE FROM memory_records WHERE id IN (SELECT id FROM memory_record_duplicates);

-- Under the reference's own name, so that it does not make its own beside it.
DROP INDEX IF EXISTS idx_memory_ns_kind_id;
CREATE UNIQUE INDEX idx_memory_ns_kind_id ON memory_records (namespace, record_kind, record_id);

-- When a record expires, in microseconds of Unix time: expirySQL in prune.go.
CREATE INDEX idx_memory_expiry ON memory_records ((
	CASE WHEN created_at GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*' AND created_at NOT GLOB '*[^-+0-9TtZz:. ]*' AND date(substr(created_at, 1, 10)) = substr(created_at, 1, 10) THEN
		CAST(strftime('%s', upper(substr(created_at, 1, CASE WHEN substr(created_at, 17, 1) = ':' THEN 19 ELSE 16 END)) ||
			CASE WHEN length(created_at) > 16 AND substr(created_at, -6) GLOB '[+-][0-9][0-9]:[0-9][0-9]' THEN substr(created_at, -6)
				WHEN length(created_at) > 16 AND substr(created_at, -5) GLOB '[+-][0-9][0-9][0-9][0-9]' THEN substr(created_at, -5, 3) || ':' || substr(created_at, -2)
				ELSE '' END) AS INTEGER) * 1000000
		+ CASE WHEN substr(created_at, 20, 1) = '.' THEN CAST(CAST('0' || substr(created_at, 20) AS REAL) * 1000000 + 0.001 AS INTEGER) ELSE 0 END END + ttl_seconds * 1000000))
WHERE ttl_seconds IS NOT NULL;

-- The tags of each record, in the order of list. Triggers keep them, so that
-- they are right whatever program writes.
CREATE TABLE memory_record_tags (
	namespace TEXT NOT NULL,
	tag TEXT NOT NULL,
	record_kind TEXT NOT NULL,
	record_id TEXT NOT NULL,
	PRIMARY KEY (namespace, tag, record_kind, record_id)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER memory_record_tags_insert AFTER INSERT ON memory_records
WHEN CASE WHEN json_valid(NEW.metadata_json) THEN json_type(NEW.metadata_json, '$.tags') END = 'array'
BEGIN
	INSERT OR IGNORE INTO memory_record_tags
	SELECT NEW.namespace, value, NEW.record_kind, NEW.record_id FROM json_each(NEW.metadata_json, '$.tags') WHERE type = 'text';
END;

CREATE TRIGGER memory_record_tags_update AFTER UPDATE OF namespace, record_kind, record_id, metadata_json ON memory_records
WHEN OLD.metadata_json IS NOT NEW.metadata_json OR OLD.namespace <> NEW.namespace OR OLD.record_kind <> NEW.record_kind OR OLD.record_id <> NEW.record_id
BEGIN
	DELETE FROM memory_record_tags
	WHERE namespace = OLD.namespace AND record_kind = OLD.record_kind AND record_id = OLD.record_id
		AND tag IN (SELECT value FROM json_each(CASE WHEN json_valid(OLD.metadata_json) THEN OLD.metadata_json END, '$.tags'));
	INSERT OR IGNORE INTO memory_record_tags
	SELECT NEW.namespace, value, NEW.record_kind, NEW.record_id
	FROM json_each(CASE WHEN json_valid(NEW.metadata_json) THEN NEW.metadata_json END, '$.tags')
	WHERE type = 'text' AND json_type(NEW.metadata_json, '$.tags') = 'array';
END;

CREATE TRIGGER memory_record_tags_delete AFTER DELETE ON memory_records
WHEN OLD.metadata_json IS NOT NULL
BEGIN
	DELETE FROM memory_record_tags
	WHERE namespace = OLD.namespace AND record_kind = OLD.record_kind AND record_id = OLD.record_id
		AND tag IN (SELECT value FROM json_each(CASE WHEN json_valid(OLD.metadata_json) THEN OLD.metadata_json END, '$.tags'));
END;

INSERT OR IGNORE INTO memory_record_tags
SELECT r.namespace, t.value, r.record_kind, r.record_id
FROM memory_records r, json_each(CASE WHEN json_valid(r.metadata_json) THEN r.metadata_json END, '$.tags') t
WHERE t.type = 'text' AND json_type(r.metadata_json, '$.tags') = 'array';

-- Words of the long-term records, for recall. Programs that know nothing of it
-- may write; so triggers only note what changed, and the words follow when they
-- are asked for.
CREATE VIRTUAL TABLE memory_record_words USING fts5 (main, prefix, tokenize = 'unicode61');
INSERT INTO memory_record_words (memory_record_words, rank) VALUES ('secure-delete', 1);

CREATE TABLE memory_record_pending (number INTEGER PRIMARY KEY) STRICT;

CREATE TRIGGER memory_record_pending_insert AFTER INSERT ON memory_records WHEN NEW.namespace = 'long_term'
BEGIN
	INSERT OR IGNORE INTO memory_record_pending VALUES (NEW.id);
END;

CREATE TRIGGER memory_record_pending_update AFTER UPDATE OF namespace, record_kind, record_id, payload_json ON memory_records
WHEN NEW.namespace = 'long_term' OR OLD.namespace = 'long_term'
BEGIN
	INSERT OR IGNORE INTO memory_record_pending VALUES (NEW.id);
END;

CREATE TRIGGER memory_record_pending_delete AFTER DELETE ON memory_records WHEN OLD.namespace = 'long_term'
BEGIN
	INSERT OR IGNORE INTO memory_record_pending VALUES (OLD.id);
END;

INSERT INTO memory_record_pending SELECT id FROM memory_records WHERE namespace = 'long_term';
