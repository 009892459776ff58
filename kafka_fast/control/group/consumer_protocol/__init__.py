"""Members by the consumer protocol (KIP-848): the coordinator assigns."""
