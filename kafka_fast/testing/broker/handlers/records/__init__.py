"""Records in and out of partitions, and the offsets to read at."""
