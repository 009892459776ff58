"""The produce side of the data plane: from `send` to the end of a delivery. Private."""
