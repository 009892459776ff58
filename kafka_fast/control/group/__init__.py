"""Consumer groups: the coordinator, offsets, and the member that this client is. Sans-I/O."""
