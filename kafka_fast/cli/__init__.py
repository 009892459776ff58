"""The kafka-fast command line."""
