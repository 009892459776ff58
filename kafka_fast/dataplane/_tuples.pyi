"""Compiled; nothing here is for Python."""
