"""An embedded Kafka broker for tests and demos."""
