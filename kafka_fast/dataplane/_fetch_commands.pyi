"""What the control plane asks of fetching; nothing of it is for Python."""
