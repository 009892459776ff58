"""What topics, brokers and other resources are set to."""
