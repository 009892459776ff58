"""What goes wrong with brokers, and since when: for errors, the log and metrics."""
