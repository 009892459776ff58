"""Topics and partitions, and their logs: what is appended, by whom, and what tests plant there."""
