"""What the control plane asks of the data plane."""

from kafka_fast.dataplane.core._sender_state cimport sender_state


# Carry out all commands that have come in, in order.
cdef void carry_out_commands(sender_state* state, double now) noexcept nogil
