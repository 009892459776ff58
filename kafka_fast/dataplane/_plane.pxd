"""The data plane as an object: what the control plane's side of the house holds."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from kafka_fast.dataplane._lists cimport sender_state
from kafka_fast.dataplane._topics cimport Topic
from kafka_fast.dataplane.state cimport kf_batch, kf_env, kf_plane, kf_queue


cdef class Environment:
    """What the planes ask of the outside. net/ fills it with the machine, tests with a virtual one.

    `env.context` must stay valid as long as the object lives; a DataPlane keeps it alive.
    """

    cdef kf_env env


cdef class DataPlane:
    cdef kf_plane* plane
    cdef sender_state sender
    cdef Environment environment
    cdef dict topics         # name -> Topic
    cdef list queues         # queue id -> (Topic, partition)
    cdef dict observers      # address of a batch -> its Observations, see _observers
    cdef kf_batch* last_observed   # the batch that was observed last, and its Observations
    cdef object last_observations
    cdef list ended          # Observations whose batch has ended
    cdef readonly int64_t unnotified  # Observations in `ended`, or being run
    cdef readonly str client_id   # for the log
    cdef readonly object lost     # Losses that no flush has raised yet; None: there are none
    cdef readonly object unlogged  # those of them that were not logged either
    cdef bint told  # whoever shut the plane down counted and told what that failed
    cdef readonly bint refuses  # closing: no record is accepted any more
    cdef readonly object refusal  # what sends raise then; None: that the producer is closed
    cdef readonly bint dead     # closed, or inherited through fork: nothing may wait for it
    cdef readonly bint inherited  # through fork: its locks may be held, for ever, by nobody
    cdef object callback_starter  # starts the thread that runs callbacks; None: it runs
    cdef object loop_bridge   # (event loop) -> its LoopWaits, see _awaiting; None: no loop may wait
    cdef object guide         # explains failures and waits, see net/guide; None: nobody does
    cdef object last_waits    # weak reference to the LoopWaits that was used last, or None
    cdef int owner_pid
    cdef unsigned long callback_thread  # runs the users' callbacks; 0: none yet
    cdef object __weakref__

    cdef kf_queue* queue(self, int64_t queue_id) except NULL
    cdef Topic find_topic(self, str name)
    cdef tuple oldest(self)


# A malloc'ed copy; whoever is handed it (a command, a session, a heartbeat) owns it.
cdef uint8_t* copy_bytes(bytes data) except NULL
