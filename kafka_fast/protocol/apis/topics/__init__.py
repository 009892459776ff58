"""Topics and their partitions: created, described, moved, cut, deleted."""
