"""The data plane as an object: what the control plane's side of the house holds."""

from libc.stdint cimport uint8_t

from kafka_fast.dataplane.produce._lists cimport sender_state
from kafka_fast.dataplane.core.state cimport kf_env, kf_plane


cdef class Environment:
    """What the planes ask of the outside. net/ fills it with the machine, tests with a virtual one.

    `env.context` must stay valid as long as the object lives; a DataPlane keeps it alive.
    """

    cdef kf_env env


cdef class DataPlane:
    cdef kf_plane* plane
    cdef sender_state sender
    cdef Environment environment
    cdef readonly bint dead       # shut down, or inherited through fork: nothing may wait for it
    cdef readonly bint inherited  # its locks may be held, for ever, by nobody
    cdef int owner_pid
    cdef object __weakref__


# A malloc'ed copy; whoever is handed it (a command, a session, a heartbeat) owns it.
cdef uint8_t* copy_bytes(bytes data) except NULL
