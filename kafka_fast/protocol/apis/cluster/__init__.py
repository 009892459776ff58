"""Which brokers there are, what they speak, and which of them coordinates."""
