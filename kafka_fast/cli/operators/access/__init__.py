"""Who may do what, and how much: rules, passwords, tokens, quotas."""
