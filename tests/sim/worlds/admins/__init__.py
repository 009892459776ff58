"""A world with an admin client: its operations under faults, against a model."""
