"""Logins of clients that need none any more."""
