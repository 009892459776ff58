"""Groups of consumers and of others: what they are, who is in them, where they are."""
