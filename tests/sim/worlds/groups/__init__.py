"""Members of groups in a world, and what must hold of what they read and commit."""
