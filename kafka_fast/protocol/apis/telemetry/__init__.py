"""Metrics that a client pushes to its cluster (KIP-714)."""
