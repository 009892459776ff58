"""Which brokers and controllers there are, what they speak, and which of them coordinates."""
