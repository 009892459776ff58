"""The produce side of the data plane as an object."""

from libc.stdint cimport int64_t

from kafka_fast.dataplane.core._plane cimport DataPlane
from kafka_fast.dataplane.produce._losses cimport LossCounts
from kafka_fast.dataplane.core.state cimport kf_batch, kf_producer, kf_queue, kf_topic


cdef class TopicQueues:
    """A topic's queues. `topic.partition_count` is 0 until metadata is there."""

    cdef kf_topic* topic     # the producer's, which lives as long as the plane
    cdef readonly str name


cdef class Queues:
    cdef kf_producer* producer     # lives as long as the plane
    cdef readonly DataPlane plane  # what carries its requests
    cdef dict topics         # name -> TopicQueues
    cdef list places         # queue id -> (TopicQueues, partition)
    cdef dict observers      # address of a batch -> its Observations, see _observers
    cdef kf_batch* last_observed   # the batch that was observed last, or NULL
    cdef object last_observations  # its Observations
    cdef kf_batch* taken     # ended batches, out of the plane's list, that `collect` has not seen
    cdef list ended          # Observations whose batch has ended
    cdef readonly int64_t observed    # Observations that were put into `ended`, in all
    cdef readonly int64_t notified    # those of them that have run
    cdef readonly str client_id   # for the log
    cdef LossCounts lost      # failures that nobody can observe, and no flush has raised yet
    cdef LossCounts unlogged  # those of them that were not logged either
    cdef LossCounts unread    # failures that a handle would tell, and nobody has asked it yet
    cdef readonly int exit_status  # of a process in which failures were lost; 0: as without them
    # Called with `(self,)` by finalizers that find failures when the client has ended: it must not
    # wait, import or log. None: nobody is told.
    cdef public object reporter
    cdef bint is_reporting    # it was called, and `log_finally` has not come since
    cdef bint is_settled      # the end of the process has told of everything
    cdef bint has_odd_times  # a timestamp of another unit than ms was logged
    cdef public bint told  # the user has heard of the records that `shut_down` failed
    cdef readonly bint refuses  # no record is accepted
    cdef readonly bint is_held  # not for good: until the next transaction
    cdef int64_t refused_rows  # of bulk calls, some of whose rows were accepted
    cdef readonly object refusal  # what sends raise then; None: that the producer is closed
    # Called before a caller gets the error that the producer is closed; None: nothing is called
    cdef public object before_refusal
    # Starts the thread that runs callbacks, before the first is registered; None: nothing to start
    cdef public object callback_starter
    cdef public object loop_bridge  # (event loop) -> its LoopWaits, see _awaiting; None: none waits
    cdef public object explainer  # of failures and waits: producer/failure_explainer, or None
    cdef object last_waits    # weak reference to the LoopWaits that was used last, or None
    cdef int owner_pid        # of the process that made it
    # The thread that runs the users' callbacks, and must never wait for itself; 0: none yet
    cdef public unsigned long callback_thread
    cdef object __weakref__

    cdef int prepare_refusal(self) except -1
    cdef kf_queue* queue(self, int64_t queue_id) except NULL
    cdef TopicQueues find_topic(self, str name)

# An `Outcome` as batches have it, enum kf_outcome.
cdef int outcome_code(object outcome) except -1
