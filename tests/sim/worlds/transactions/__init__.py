"""Producers with transactions, and the chains that they are links of."""
