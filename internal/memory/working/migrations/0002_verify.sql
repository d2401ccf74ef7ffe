-- What a person should look at, and when one last did.

ALTER TABLE memory_items ADD COLUMN verify TEXT NOT NULL DEFAULT ''; -- JSON list of reasons, or ''
ALTER TABLE memory_items ADD COLUMN verified_at INTEGER;
CREATE INDEX revisions_by_time ON revisions (at);
CREATE INDEX revisions_reverted ON revisions (number, version) WHERE action = 'revert';
