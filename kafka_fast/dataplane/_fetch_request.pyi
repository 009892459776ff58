"""Requests of the steady-state form of Fetch; nothing of it is for Python."""
