"""Classic groups, groups of KIP-848, and the offsets that they commit."""
