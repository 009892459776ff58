"""The connections to brokers: when they are made, what is said on them first, how they end."""
