"""What topics and brokers are set to."""
