"""Producer policy: routes, retries, sequences, epochs. Private."""
