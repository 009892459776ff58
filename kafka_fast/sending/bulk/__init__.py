"""Sending in bulk: the records of a call come as columns. Private."""
