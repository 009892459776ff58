"""Producer ids, and transactions."""
