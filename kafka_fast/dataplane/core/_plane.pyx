"""The data plane as an object, a transport: links, raw requests, heartbeats, events, numbers.

`_queues` is the produce side on top of it, `_streams` the fetch side; a client has what it needs.
Events and rows leave as plain tuples and commands arrive as plain arguments: net/ translates them
to and from the control plane's records, so that the two planes never import each other.

Threads: any, with the GIL. `step` is the exception: it belongs to one thread at a time, the data
plane's own or, in a simulation, the caller's.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from kafka_fast._wire._checksum cimport crc32c_join, crc32c_update
from kafka_fast.dataplane.core._sender cimport sender_destroy, sender_init, step
from kafka_fast.dataplane.core._events cimport event_tuple, node_dict, stats_dict
from kafka_fast.dataplane.core.link cimport *
from kafka_fast.dataplane.core.state cimport *

from kafka_fast.errors import UsageError

WAIT_SLICE = KF_WAIT_SLICE

# The names of the codes that leave in tuples; net/ knows them by these.
EVENT_RESPONSE = KF_EVENT_RESPONSE
EVENT_LINK_CLOSED = KF_EVENT_LINK_CLOSED
EVENT_THROTTLED = KF_EVENT_THROTTLED
EVENT_DUMP = KF_EVENT_DUMP
EVENT_BAD_ANSWER = KF_EVENT_BAD_ANSWER
EVENT_HEARTBEATS_ENDED = KF_EVENT_HEARTBEATS_ENDED
EVENT_GATE_SHUT = KF_EVENT_GATE_SHUT

cdef extern from "<unistd.h>" nogil:
    int getpid()


cdef uint8_t* copy_bytes(bytes data) except NULL:
    cdef Py_ssize_t size = PyBytes_GET_SIZE(data)
    cdef uint8_t* copy = <uint8_t*>malloc(size if size > 0 else 1)
    if copy == NULL:
        raise MemoryError
    memcpy(copy, PyBytes_AS_STRING(data), size)
    return copy


@cython.no_gc_clear  # handles that go with the same garbage call the environment's functions
cdef class DataPlane:
    """One client's data plane.

    Args:
        environment: Clock, wake-ups and compression as C functions.
        max_frame: Bytes of an answer at most (`receive.message.max.bytes`).
        request_timeout: Seconds that an answer to Produce or Fetch is waited for.
        max_idle: Seconds after which an unused link is closed; 0 keeps it.
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

    # ---- commands ----

    def send_raw(self, int32_t link_id, int64_t token, bytes frame, double timeout,
                 bint of_login=False):
        """Send a whole request (length included) and report its answer under `token`.

        Args:
            timeout: Seconds; without an answer by then the link is closed.
            of_login: It does not wait at the link's gate.
        """
        cdef uint8_t* data = copy_bytes(frame)
        cdef kf_command* command = kf_command_new(KF_COMMAND_SEND_RAW)
        command.link_id = link_id
        command.token = token
        command.timeout = timeout
        command.size = PyBytes_GET_SIZE(frame)
        command.bytes = data
        command.of_login = of_login
        kf_plane_command(self.plane, command)

    def open_gate(self, int32_t link_id, double until):
        """Let requests pass a link's gate until then (monotonic seconds; 0: no limit).

        Then nothing new is sent over the link. What is to be sent waits, in order. When all
        requests in flight have been answered, GATE_SHUT is reported.
        """
        cdef kf_command* command = kf_command_new(KF_COMMAND_OPEN_GATE)
        command.link_id = link_id
        command.at = until
        kf_plane_command(self.plane, command)

    def pause_link(self, int32_t link_id, double seconds):
        """Send no Produce or Fetch over a link for a while: its broker throttles this client.

        The time of requests in flight does not run meanwhile.
        """
        cdef kf_command* command = kf_command_new(KF_COMMAND_PAUSE_LINK)
        command.link_id = link_id
        command.timeout = seconds
        kf_plane_command(self.plane, command)

    def close_link(self, int32_t link_id):
        """Close a link; its batches come back, and LINK_CLOSED is reported."""
        cdef kf_command* command = kf_command_new(KF_COMMAND_CLOSE_LINK)
        command.link_id = link_id
        kf_plane_command(self.plane, command)

    def start_heartbeats(self, int32_t link_id, int64_t token, bytes frame, double period,
                         bytes expected_body, double timeout, double delay=0.0,
                         int32_t epoch_pos=0):
        """Send a request after `delay` and every `period` seconds, until `set_alive_until`'s time.

        An answer that equals `expected_body` behind the correlation id is swallowed. Any other
        answer is a RESPONSE under `token`. So is the end of the link, which ends the heartbeats.

        Args:
            token: Never used for other heartbeats.
            frame: The request, length included.
            timeout: Seconds; without an answer by then the link is closed.
            epoch_pos: Where the frame has the member's epoch or generation. The data plane writes
                there what the last answer told: one to a ConsumerGroupHeartbeat, which tells the
                period as well, or to a JoinGroup that `send_between` sent. Until an epoch is known
                no heartbeat is sent. 0: the frame stays as it is.
        """
        cdef kf_command* command
        cdef kf_heartbeat* heartbeat
        if not 0 <= epoch_pos <= len(frame) - 4:
            raise UsageError("the epoch does not stand in the frame")
        heartbeat = <kf_heartbeat*>calloc(1, sizeof(kf_heartbeat))
        if heartbeat == NULL:
            raise MemoryError
        try:
            heartbeat.frame = copy_bytes(frame)
            heartbeat.expected = copy_bytes(expected_body)
        except BaseException:
            kf_heartbeat_free(heartbeat)
            raise
        heartbeat.token = token
        heartbeat.link_id = link_id
        heartbeat.frame_size = PyBytes_GET_SIZE(frame)
        heartbeat.expected_size = PyBytes_GET_SIZE(expected_body)
        heartbeat.due = delay
        heartbeat.epoch_pos = epoch_pos
        heartbeat.period = period
        heartbeat.timeout = timeout
        command = kf_command_new(KF_COMMAND_START_HEARTBEATS)
        command.heartbeat = heartbeat
        kf_plane_command(self.plane, command)

    def stop_heartbeats(self, int64_t token):
        """End these heartbeats. An answer that is still to come is swallowed."""
        cdef kf_command* command = kf_command_new(KF_COMMAND_STOP_HEARTBEATS)
        command.token = token
        kf_plane_command(self.plane, command)

    def send_between(self, int64_t token, int64_t own_token, int64_t heard, bytes frame,
                     double timeout):
        """Send another request once, as soon as none of these heartbeats is in flight.

        Its answer is a RESPONSE under `own_token`. The request is dropped if a RESPONSE of the
        heartbeats is still to be heard, or comes up before the request is sent.

        Args:
            token: The heartbeats'.
            own_token: Its own.
            heard: How many RESPONSEs of the heartbeats, and of requests between them, were heard.
            frame: The request, length included.
            timeout: Seconds; without an answer by then the link is closed.
        """
        cdef uint8_t* data = copy_bytes(frame)
        cdef kf_command* command = kf_command_new(KF_COMMAND_SEND_BETWEEN)
        command.token = token
        command.own_token = own_token
        command.heard = heard
        command.timeout = timeout
        command.bytes = data
        command.size = PyBytes_GET_SIZE(frame)
        kf_plane_command(self.plane, command)

    def set_alive_until(self, double until):
        """Let heartbeats be sent until then (monotonic seconds): the user is not stuck."""
        kf_plane_set_alive(self.plane, until)

    def request_dump(self, int64_t token):
        """Have every link's debug ring reported as DUMP events; one with link id 0 ends them."""
        cdef kf_command* command = kf_command_new(KF_COMMAND_DUMP)
        command.token = token
        kf_plane_command(self.plane, command)

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
        """Return what happened since the last call, in order.

        Returns:
            Tuples (kind, link_id, code, detail, token, frame, told); see kf_event.h for the kinds.
            `told` is, by kind: of a REPORT the queue's row and a list of its batches' rows, of a
            ROUTE a list of queue ids, of a FETCH_PUNT or STREAMS_STOPPED a list of streams' rows,
            of a BAD_ANSWER (misfit, asked, place, earlier); else None.
        """
        cdef kf_event* event = kf_plane_take_events(self.plane)
        cdef kf_event* following
        cdef list events = []
        while event != NULL:
            following = event.next
            events.append(event_tuple(event))
            kf_event_free(event)
            event = following
        return events

    def step(self, double now):
        """Take one turn; returns when to call again at the latest (0: only when woken)."""
        cdef double until
        with nogil:
            until = step(&self.sender, now)
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
