"""The control plane: policy as sans-I/O state machines. Private."""
