"""A consumer as a member of its group, and one that only describes a group."""
