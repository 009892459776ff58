"""When to fetch; nothing of it is for Python."""
