"""The data plane: what moves records without the GIL. Private."""
