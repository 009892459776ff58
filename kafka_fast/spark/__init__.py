"""Write whole Spark partitions into Kafka."""
