"""The fetch side of the data plane: from a Fetch request to chunks of its answers. Private."""
