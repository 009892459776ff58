"""The consumer's control plane: where each partition is read from, and who owns it. Sans-I/O."""
