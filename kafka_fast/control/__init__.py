"""The control plane: decides what the data plane does. State machines without I/O. Private."""
