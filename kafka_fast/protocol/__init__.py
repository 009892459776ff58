"""Kafka's messages as declarative tables, and their codec. Part of the public wire API."""
