"""Calls of `Admin` that take several operations, as steps: what one brings decides on the next."""
