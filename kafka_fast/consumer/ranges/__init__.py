"""Reading a part of a topic once: from one offset or time of each partition to another."""
