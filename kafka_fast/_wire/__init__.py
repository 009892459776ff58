"""Buffers and checksums: the lowest compiled layer. Private."""
