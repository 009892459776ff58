"""The data plane as an object, a transport: links, raw requests, heartbeats, events, numbers.

`_queues` is the produce side on top of it, `_streams` the fetch side; a client has what it needs.
Events leave to be read, and commands arrive packed: carriers in net/ and in the clients translate
to and from the control plane's records, so that the two planes never import each other.

Thread: any, with the GIL. `turn_plane` is the exception: it belongs to one thread at a time, the
data plane's own or, in a simulation, the caller's.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from kafka_fast._wire._checksum cimport crc32c_join, crc32c_update
from kafka_fast.dataplane.core._sender cimport sender_destroy, sender_init, turn_plane
from kafka_fast.dataplane.core._events cimport node_dict, plane_events, stats_dict
from kafka_fast.dataplane.core.link cimport *
from kafka_fast.dataplane.core.state cimport *

from kafka_fast.errors import UsageError

WAIT_SLICE = KF_WAIT_SLICE

cdef extern from "<unistd.h>" nogil:
    int getpid()


cdef uint8_t* copy_bytes(bytes data) except NULL:
    cdef Py_ssize_t size = PyBytes_GET_SIZE(data)
    cdef uint8_t* copy = <uint8_t*>malloc(size if size > 0 else 1)
    if copy == NULL:
        raise MemoryError
    memcpy(copy, PyBytes_AS_STRING(data), size)
    return copy


cdef kf_heartbeat* heartbeat_of(object message) except NULL:
    cdef Py_ssize_t size = len(message.frame)
    cdef kf_heartbeat* heartbeat
    if not 0 <= message.epoch_pos <= size - 4:
        raise UsageError("the epoch does not stand in the frame")
    heartbeat = <kf_heartbeat*>calloc(1, sizeof(kf_heartbeat))
    if heartbeat == NULL:
        raise MemoryError
    try:
        heartbeat.frame = copy_bytes(message.frame)
        heartbeat.frame_size = size
        heartbeat.expected = copy_bytes(message.expected)
        heartbeat.expected_size = len(message.expected)
        heartbeat.token = message.token
        heartbeat.link_id = message.link_id
        heartbeat.due = message.delay
        heartbeat.epoch_pos = message.epoch_pos
        heartbeat.period = message.period
        heartbeat.timeout = message.timeout
    except BaseException:
        kf_heartbeat_free(heartbeat)
        raise
    return heartbeat


@cython.no_gc_clear  # handles that go with the same garbage call the environment's functions
cdef class DataPlane:
    """One client's data plane.

    Args:
        environment: clock, wake-ups and compression as C functions.
        max_frame: bytes of an answer at most (`receive.message.max.bytes`).
        request_timeout: seconds that an answer to Produce or Fetch is waited for.
        max_idle: seconds after which an unused link is closed; 0 keeps it.
    """

    def __cinit__(self, Environment environment, *, size_t max_frame, double request_timeout,
                  double max_idle=0.0):
        cdef kf_env env = environment.env
        env.crc32c = crc32c_update
        env.crc32c_combine = crc32c_join
        self.environment = environment
        self.owner_pid = getpid()
        self.plane = <kf_plane*>malloc(sizeof(kf_plane))
        if self.plane == NULL:
            raise MemoryError
        kf_plane_init(self.plane, &env)
        self.plane.max_frame = max_frame
        self.plane.request_timeout = request_timeout
        self.plane.max_idle = max_idle
        sender_init(&self.sender, self.plane)

    # ---- what the user's thread does ----

    def set_alive_until(self, double until):
        """Let heartbeats be sent until then (monotonic seconds): the user is not stuck."""
        kf_plane_set_alive(self.plane, until)

    # ---- its end ----

    def shut_down(self):
        """Close all links and fail whatever has not ended. The plane gets no turn any more."""
        self.dead = True
        sender_destroy(&self.sender)

    def mark_inherited(self):
        """Note that this process is a child of the plane's: no lock in it may be taken."""
        self.dead = self.inherited = True
        if self.plane.producer != NULL:
            self.plane.producer.inherited = True

    # ---- events and turns ----

    def take_events(self):
        """Return what happened since the last call, in order."""
        return plane_events(kf_plane_take_events(self.plane))

    def turn_plane(self, double now):
        """Take one turn; returns when to call again at the latest (0: only when woken)."""
        cdef double until
        with nogil:
            until = turn_plane(&self.sender, now)
        return until

    # ---- numbers ----

    def check_owner(self):
        """Raise UsageError in a forked child, where nothing of the parent's plane may be locked."""
        if self.inherited:
            raise UsageError("this client belongs to the parent of this process: make one in "
                             "each process")

    def stats(self):
        """Return counters and histograms; times in microseconds, sizes in bytes."""
        self.check_owner()
        return stats_dict(&self.plane.stats)

    def node_stats(self):
        """Return counters for each node that ever had a link, by node id; -1: bootstrap servers.

        All links to a node count together, whatever they are for.
        """
        self.check_owner()
        cdef dict found = {}
        cdef kf_node* node
        kf_lock(&self.plane.lock)
        node = self.plane.nodes
        kf_unlock(&self.plane.lock)
        while node != NULL:
            found[node.id] = node_dict(node)
            node = node.next
        return found

    def __dealloc__(self):
        if self.plane == NULL or getpid() != self.owner_pid:
            return  # after a fork the locks may be held by threads that the fork did not copy
        sender_destroy(&self.sender)
        kf_plane_destroy(self.plane)
        free(self.plane)
