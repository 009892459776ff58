"""Topics and their partitions: created, deleted, cut."""
