"""Delegation tokens (KIP-48)."""
