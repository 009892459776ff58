"""Transactions of producers: their states, and the coordinators that keep and end them."""
