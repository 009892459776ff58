"""What the control plane asks of fetching."""

from kafka_fast.dataplane.core._sender_state cimport sender_state
from kafka_fast.dataplane.core.state cimport kf_command


# Carry out a command from KF_COMMAND_PROGRAM_FETCH on; takes what it keeps out of the command.
cdef void carry_out_fetch(sender_state* state, kf_command* command, double now) noexcept nogil
