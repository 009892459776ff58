"""What failures and long waits say of their causes."""
