"""Heartbeats; nothing of it is for Python."""
