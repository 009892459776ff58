"""The produce side of the data plane: from a queue to the end of a batch. Private."""
