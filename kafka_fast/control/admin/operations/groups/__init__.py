"""The operations on groups: list, describe, delete; their members and their offsets."""
