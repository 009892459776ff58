"""Quotas of users, clients and addresses (KIP-546)."""
