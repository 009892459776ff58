"""Logins, ACLs, SCRAM credentials."""
