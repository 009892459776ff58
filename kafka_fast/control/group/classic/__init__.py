"""Members by the classic protocol: the group's leader assigns."""
