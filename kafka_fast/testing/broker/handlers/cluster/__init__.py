"""Versions, brokers, coordinators."""
