-- Times are integer milliseconds UTC; NULL stands for never.

CREATE TABLE messages (
	n          INTEGER PRIMARY KEY, -- the n of MSG-n
	id         TEXT    NOT NULL UNIQUE, -- made of the idempotency key
	trigger    TEXT    NOT NULL,
	lead       TEXT    NOT NULL, -- what the message says itself
	memories   TEXT    NOT NULL, -- JSON: what it rests on
	session_id TEXT    NOT NULL,
	channel    TEXT    NOT NULL,
	user_id    TEXT    NOT NULL,
	zone       TEXT    NOT NULL,
	private    INTEGER NOT NULL, -- its session is private
	from_agent TEXT    NOT NULL, -- '' unless another agent sent it here
	to_agent   TEXT    NOT NULL, -- '' unless it goes to another agent
	own_hour   INTEGER NOT NULL, -- the user named its hour
	state      TEXT    NOT NULL, -- waiting, held, sent, acked, withdrawn
	hold       TEXT    NOT NULL, -- of a held one: address, people or muted
	reason     TEXT    NOT NULL, -- why it is not sent
	created_at INTEGER NOT NULL,
	due_at     INTEGER NOT NULL, -- not sent before
	until_at   INTEGER NOT NULL, -- of a waiting one: looked at again
	sent_at    INTEGER,
	shown_at   INTEGER,
	acked_at   INTEGER
) STRICT;

CREATE INDEX messages_by_state ON messages (state, until_at);
CREATE INDEX messages_by_addressee ON messages (channel, user_id, to_agent, sent_at);
CREATE INDEX messages_by_shown ON messages (shown_at, state);

-- Which messages rest on an item.
CREATE TABLE rests (
	item TEXT    NOT NULL,
	n    INTEGER NOT NULL,
	PRIMARY KEY (item, n)
) STRICT, WITHOUT ROWID;

-- What was spoken of, so that an item that is touched again makes no news.
CREATE TABLE said (
	trigger TEXT NOT NULL,
	item    TEXT NOT NULL,
	PRIMARY KEY (trigger, item)
) STRICT, WITHOUT ROWID;

CREATE TABLE reminders (
	item    TEXT PRIMARY KEY,
	body    TEXT NOT NULL, -- JSON
	next_at INTEGER        -- NULL where none comes
) STRICT, WITHOUT ROWID;

CREATE INDEX reminders_by_next ON reminders (next_at);

CREATE TABLE deliveries (
	n        INTEGER NOT NULL,
	route    TEXT    NOT NULL,
	state    TEXT    NOT NULL, -- pending, done, failed
	attempts INTEGER NOT NULL,
	next_at  INTEGER NOT NULL,
	claim    INTEGER NOT NULL, -- some process tries it until then; 0 for none
	error    TEXT    NOT NULL,
	done_at  INTEGER,
	PRIMARY KEY (n, route)
) STRICT, WITHOUT ROWID;

CREATE INDEX deliveries_by_next ON deliveries (state, next_at);

CREATE TABLE mutes (
	what     TEXT PRIMARY KEY, -- all, a trigger, or the handle of a memory
	at       INTEGER NOT NULL,
	until_at INTEGER           -- NULL until it is unmuted
) STRICT, WITHOUT ROWID;

-- How far the changes of memory have been followed.
CREATE TABLE state (
	one  INTEGER PRIMARY KEY CHECK (one = 1),
	seq  INTEGER NOT NULL,
	item TEXT    NOT NULL
) STRICT;
INSERT INTO state VALUES (1, 0, '');
