"""The parts of a record as callers bring them."""
