-- Which items took the place of one, for whoever takes its words away.

CREATE INDEX memory_items_by_supersedes ON memory_items (supersedes) WHERE supersedes <> '';
CREATE INDEX memory_items_by_superseded_by ON memory_items (superseded_by) WHERE superseded_by <> '';
