-- The tables of OpenClaw's own index, column by column. They are not STRICT since
-- OpenClaw's are not: either program reads what the other wrote.
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
);

CREATE TABLE files (
  path   TEXT PRIMARY KEY,
  source TEXT NOT NULL DEFAULT 'memory',
  hash   TEXT NOT NULL,    -- SHA-256 of the text, hexadecimal
  mtime  INTEGER NOT NULL, -- milliseconds UTC
  size   INTEGER NOT NULL
);

CREATE TABLE chunks (
  id         TEXT PRIMARY KEY, -- SHA-256 of source:path:start_line:end_line:hash:model
  path       TEXT NOT NULL,
  source     TEXT NOT NULL DEFAULT 'memory',
  start_line INTEGER NOT NULL,
  end_line   INTEGER NOT NULL,
  hash       TEXT NOT NULL, -- of the chunk as the file has it
  model      TEXT NOT NULL,
  text       TEXT NOT NULL, -- without secrets
  embedding  TEXT NOT NULL, -- JSON array; [] while there is none
  updated_at INTEGER NOT NULL
);
CREATE INDEX idx_chunks_path ON chunks(path);
CREATE INDEX idx_chunks_source ON chunks(source);
CREATE INDEX idx_chunks_pending ON chunks(hash) WHERE embedding = '[]';

-- OpenClaw has the vectors in a table of the sqlite-vec extension; here they are
-- in a plain one of the same columns. embedding is float32, little-endian.
CREATE TABLE chunks_vec (
  id        TEXT PRIMARY KEY,
  embedding BLOB NOT NULL
);

CREATE VIRTUAL TABLE chunks_fts USING fts5(
  text, id UNINDEXED, path UNINDEXED, source UNINDEXED, model UNINDEXED, start_line UNINDEXED, end_line UNINDEXED
);

CREATE TABLE embedding_cache (
  provider     TEXT NOT NULL,
  model        TEXT NOT NULL,
  provider_key TEXT NOT NULL,
  hash         TEXT NOT NULL,
  embedding    TEXT NOT NULL,
  dims         INTEGER,
  updated_at   INTEGER NOT NULL,
  PRIMARY KEY (provider, model, provider_key, hash)
);
CREATE INDEX idx_embedding_cache_updated_at ON embedding_cache(updated_at);
