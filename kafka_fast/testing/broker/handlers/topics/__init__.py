"""Topics and their records: created, deleted, cut."""
