"""Calls of the requester in a world of brokers that only answer."""
