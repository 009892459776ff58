"""Brokers to test against: embedded, null and real Apache Kafka."""
