"""The control plane's requests: where they go, how often they are tried, and when they end."""
