"""What is known of the cluster: its brokers, topics and leaders, and when to ask again."""
