"""Producers of a world, what goes wrong there, and the world itself."""
