"""Clients and their process: its end, its forks, and finalizers that must not wait."""
