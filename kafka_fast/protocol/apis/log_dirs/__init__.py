"""Log directories of brokers: what they hold, and moves between them."""
