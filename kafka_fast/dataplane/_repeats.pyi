"""Frames that are sent again and again; nothing of it is for Python."""
