"""The data plane as an object, for Python."""

from libc.stdint cimport uint8_t

from kafka_fast.dataplane.core._sender_state cimport sender_state
from kafka_fast.dataplane.core.state cimport kf_env, kf_heartbeat, kf_plane


cdef class Environment:
    """What the planes ask of the outside. net/ fills it with the machine, tests with a virtual one.

    `env.context` must stay valid as long as the object lives; a DataPlane keeps it alive.
    """

    cdef kf_env env


cdef class DataPlane:
    cdef kf_plane* plane          # owned
    cdef sender_state sender      # what one turn leaves to the next; data plane's thread
    cdef Environment environment  # keeps what `plane.env` points to
    cdef readonly bint dead       # shut down, or inherited through fork: nothing may wait for it
    cdef readonly bint inherited  # made by a parent process: its locks may be held forever
    cdef int owner_pid            # of the process that made it
    cdef object __weakref__


# A malloc'ed copy. The command, session or heartbeat that it is put into owns it.
cdef uint8_t* copy_bytes(bytes data) except NULL

# What a StartHeartbeats says, as the data plane keeps it; raises UsageError if it cannot be so.
cdef kf_heartbeat* heartbeat_of(object message) except NULL
