"""The fetch side of the data plane: from a Fetch request to records. Private."""
