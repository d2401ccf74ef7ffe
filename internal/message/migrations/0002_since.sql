-- What was made before then was there when the ledger began to follow memory: it is
-- no news.
ALTER TABLE state ADD COLUMN since INTEGER NOT NULL DEFAULT 0;
