"""What topics are set to."""
