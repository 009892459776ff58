"""The machine under the planes of a simulation; `net/_pump` has the real one.

The clock stands still until it is set. Each read moves it by a nanosecond, so that a wait of no
length ends. Wake-ups are flags. Compression happens in the call. Links are pipes in memory; the
seed decides how many bytes each read and write handles. No thread runs here: the simulation gives
the data plane its turns, by the rules of the real poller.

Thread: a single one for everything.
"""

from libc.errno cimport EPIPE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE

from kafka_fast.dataplane.core._plane cimport DataPlane, Environment
from kafka_fast.dataplane.produce._queues cimport Queues
from kafka_fast.dataplane.core._sender cimport turn_plane
from kafka_fast.dataplane.core._events cimport trace_line
from kafka_fast.dataplane.core.link cimport *
from kafka_fast.dataplane.core.state cimport *
from kafka_fast.net._compressor cimport coder_free, coder_init, compress_batch

cdef double TICK = 1e-9  # seconds by which each read moves the clock


# ---- the environment's functions ----

cdef double virtual_now(void* context) noexcept nogil:
    cdef virtual_state* state = <virtual_state*>context
    state.now += TICK
    return state.now


cdef int64_t virtual_wall_ms(void* context) noexcept nogil:
    cdef virtual_state* state = <virtual_state*>context
    return state.wall_ms + <int64_t>(state.now * 1000)


cdef void note_data(void* context) noexcept nogil:
    (<virtual_state*>context).data_woken = True


cdef void note_control(void* context) noexcept nogil:
    (<virtual_state*>context).control_woken = True


cdef void note_observers(void* context) noexcept nogil:
    (<virtual_state*>context).observers_woken = True


cdef void compress_now(void* context, kf_batch* batch) noexcept nogil:
    cdef virtual_state* state = <virtual_state*>context
    compress_batch(&state.coder, batch)


cdef class VirtualMachine(Environment):
    """The environment of one simulated client.

    Args:
        codec: compression code of the record batch attributes; 0 for none.
        level: for the codec's library.
        unix_ms_at_zero: wall clock when `now` is 0.
    """

    def __cinit__(self, int codec, int level, int64_t unix_ms_at_zero):
        memset(&self.state, 0, sizeof(virtual_state))
        self.state.wall_ms = unix_ms_at_zero
        if codec:
            coder_init(&self.state.coder, codec, level)
        self.env.now = virtual_now
        self.env.wall_ms = virtual_wall_ms
        self.env.wake_data = note_data
        self.env.wake_control = note_control
        self.env.wake_observers = note_observers
        self.env.submit = compress_now
        self.env.context = &self.state

    @property
    def now(self):
        """Monotonic seconds."""
        return self.state.now

    def advance(self, double now):
        """Let time pass until `now`; the clock never goes back."""
        self.state.now = max(self.state.now, now)

    def take_data_wake(self):
        """Return whether the data plane was woken, and clear that flag."""
        cdef bint woken = self.state.data_woken
        self.state.data_woken = False
        return woken

    def take_control_wake(self):
        """Return whether the control plane was woken, and clear that flag."""
        cdef bint woken = self.state.control_woken
        self.state.control_woken = False
        return woken

    def take_observers_wake(self):
        """Return whether batches with observers have ended, and clear that flag."""
        cdef bint woken = self.state.observers_woken
        self.state.observers_woken = False
        return woken

    def __dealloc__(self):
        coder_free(&self.state.coder)


# ---- bytes on their way ----

cdef bint heap_add(heap* it, const void* data, size_t size) noexcept nogil:
    cdef size_t capacity = it.capacity
    cdef uint8_t* larger
    if it.capacity - it.size < size:
        while capacity - it.size < size:
            capacity = capacity * 2 + 256
        larger = <uint8_t*>realloc(it.data, capacity)
        if larger == NULL:
            return False
        it.data = larger
        it.capacity = capacity
    if size != 0:  # `data` may be NULL for no bytes, which memcpy does not allow
        memcpy(it.data + it.size, data, size)
    it.size += size
    return True


cdef void heap_take(heap* it, size_t size) noexcept nogil:
    it.taken += size
    if it.taken == it.size:
        it.taken = it.size = 0


cdef uint64_t draw(pipe* it) noexcept nogil:
    """Return the next of the pipe's random numbers (xorshift64)."""
    it.random ^= it.random << 13
    it.random ^= it.random >> 7
    it.random ^= it.random << 17
    return it.random


cdef size_t part_of(pipe* it, size_t size) noexcept nogil:
    """Return how many of `size` bytes this call handles: all, some, or one."""
    cdef uint64_t number = draw(it)
    if size <= 1 or <int>(number & 255) >= it.choppiness:
        return size
    return 1 if (number >> 8) & 3 == 0 else 1 + (number >> 16) % size


cdef int64_t pipe_write(void* context, const iovec* pieces, int count, int* error) noexcept nogil:
    cdef pipe* it = <pipe*>context
    cdef size_t size = 0
    cdef size_t left, len
    cdef int i
    if it.error != 0 or it.closed:
        error[0] = it.error if it.error != 0 else EPIPE
        return KF_IO_ERROR
    if it.full:
        return KF_IO_WANT_WRITE
    for i in range(count):
        size += pieces[i].iov_len
    left = part_of(it, size)
    it.full = left < size
    size = left
    for i in range(count):
        len = min(left, pieces[i].iov_len)
        if not heap_add(&it.sent, pieces[i].iov_base, len):
            return KF_IO_WANT_WRITE
        left -= len
    return size


cdef int64_t pipe_read(void* context, void* into, size_t size, int* error) noexcept nogil:
    cdef pipe* it = <pipe*>context
    cdef size_t there = it.arrived.size - it.arrived.taken
    if it.error != 0 or it.closed:
        error[0] = it.error if it.error != 0 else EPIPE
        return KF_IO_ERROR
    if there == 0:
        return 0 if it.ended else KF_IO_WANT_READ
    size = part_of(it, min(size, there))
    memcpy(into, it.arrived.data + it.arrived.taken, size)
    heap_take(&it.arrived, size)
    return size


cdef void pipe_close(void* context) noexcept nogil:
    (<pipe*>context).closed = True


cdef void pipe_release(pipe* it) noexcept nogil:
    it.references -= 1
    if it.references == 0:
        free(it.sent.data)
        free(it.arrived.data)
        free(it.trace)
        free(it)


cdef void pipe_dispose(void* context) noexcept nogil:
    """Copy the link's debug ring, for the report of a failure: the link is about to be freed."""
    cdef pipe* it = <pipe*>context
    cdef size_t size = min(it.link.trace_count, <uint32_t>KF_TRACE_LINES) * sizeof(kf_trace)
    it.trace = <kf_trace*>malloc(size + 1)
    if it.trace != NULL:
        memcpy(it.trace, it.link.trace, size)
        it.trace_count = it.link.trace_count
    it.link = NULL
    pipe_release(it)


cdef class MemoryLink:
    """The peer's end of a connection; the data plane has the other end.

    Args:
        link_id, node_id: The control plane's numbers.
        choppiness: number of reads and writes, out of 256, that handle only a part of the bytes.
        seed: decides which reads and writes these are, and how many bytes they handle.
        layer: a layer between the link and this connection; None: there is none.
    """

    def __cinit__(self, int32_t link_id, int32_t node_id, int choppiness, uint64_t seed,
                  TlsStandIn layer=None):
        self.layer = layer
        self.link_id = link_id
        self.node_id = node_id
        self.pipe = <pipe*>calloc(1, sizeof(pipe))
        if self.pipe == NULL:
            raise MemoryError
        self.pipe.references = 1
        self.pipe.choppiness = choppiness
        self.pipe.random = seed | 1

    def take_sent(self):
        """Return the bytes that the client has written since the last call."""
        cdef heap* sent = &self.pipe.sent
        cdef bytes data = PyBytes_FromStringAndSize(<char*>sent.data + sent.taken,
                                                    sent.size - sent.taken)
        heap_take(sent, sent.size - sent.taken)
        return data

    def fill(self):
        """Refuse writes of the client until `make_room`."""
        self.pipe.full = True

    def make_room(self):
        """Let the client write again; return whether writes were refused."""
        cdef bint was_full = self.pipe.full
        self.pipe.full = False
        return was_full

    def arrive(self, bytes data):
        """Let bytes arrive at the client."""
        if not heap_add(&self.pipe.arrived, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data)):
            raise MemoryError

    def end(self):
        """Close the peer's side: the client reads the remaining bytes, then the end."""
        self.pipe.ended = True

    def fail(self, int error):
        """Break the connection: reads and writes fail with this errno."""
        self.pipe.error = error

    @property
    def is_full(self):
        """Whether the client waits for room to write."""
        return self.pipe.full

    @property
    def is_closed(self):
        """Whether the client has closed its end."""
        return self.pipe.closed

    @property
    def is_ready(self):
        """Whether a poller would end the data plane's sleep for this link."""
        cdef const kf_link* link = self.pipe.link
        cdef int wants = KF_WANT_READ if link == NULL else kf_link_wants(link)
        return not self.pipe.closed and ready_of(self.pipe, wants) != 0

    def trace(self):
        """Return the link's debug ring, oldest event first, one line per event."""
        cdef kf_trace* ring = self.pipe.trace
        cdef uint32_t count = self.pipe.trace_count
        cdef uint32_t i
        if self.pipe.link != NULL:
            ring = self.pipe.link.trace
            count = self.pipe.link.trace_count
        lines = []
        for i in range(max(0, <int64_t>count - KF_TRACE_LINES), count):
            at = ring[i % <uint32_t>KF_TRACE_LINES].at
            lines.append(f"{at:.6f} {trace_line(&ring[i % <uint32_t>KF_TRACE_LINES])}")
        return lines

    def __dealloc__(self):
        if self.pipe != NULL:
            pipe_release(self.pipe)


cdef bint pipe_is_readable(const pipe* it) noexcept nogil:
    return it.error != 0 or it.ended or it.arrived.size > it.arrived.taken


cdef bint pipe_is_writable(void* context) noexcept nogil:
    return not (<pipe*>context).full


cdef int ready_of(pipe* it, int wants) noexcept nogil:
    """Return a poller's answer to a wait for `wants`; both are KF_WANT_* bits."""
    if it.error != 0:
        return KF_WANT_READ | KF_WANT_WRITE
    return wants & ((KF_WANT_READ if pipe_is_readable(it) else 0)
                    | (0 if it.full else KF_WANT_WRITE))


# ---- the data plane's turns ----

cdef class Turner:
    """Turns a data plane as its thread would, one turn at a time.

    Args:
        plane: the data plane; its environment must be `machine`.
        machine: the machine under it.
    """

    def __cinit__(self, DataPlane plane, VirtualMachine machine):
        self.plane = plane
        self.machine = machine
        self.sender = &plane.sender
        self.links = []

    def add_link(self, MemoryLink link not None):
        """Hand a connection to the data plane."""
        cdef kf_link_io io
        cdef kf_command* command
        cdef kf_link* made
        io.write = pipe_write
        io.read = pipe_read
        io.pending = NULL
        io.explain = NULL
        io.close = pipe_close
        io.dispose = pipe_dispose
        io.context = link.pipe
        if link.layer is not None:
            io = link.layer.wrap(&io, pipe_is_writable)
        made = kf_link_new(link.link_id, link.node_id, &io, -1)
        if made == NULL:
            raise MemoryError
        link.pipe.references += 1
        link.pipe.link = made
        self.links.append(link)
        command = kf_command_new(KF_SIDE_TRANSPORT)
        command.transport.kind = KF_COMMAND_ADD_LINK
        command.transport.add_link.link = made
        kf_plane_command(self.plane.plane, command)

    def turn(self):
        """Take one turn, and go to sleep unless something came in meanwhile.

        Returns:
            Monotonic seconds of the next turn, at the latest. 0.0: only when woken. -1.0: at once.
        """
        cdef kf_plane* plane = self.plane.plane
        cdef double until
        cdef pipe* it
        kf_set(&plane.wake_level, KF_WAKE_NOBODY)
        self.links = [link for link in self.links if (<MemoryLink>link).pipe.link != NULL]
        for link in self.links:
            it = (<MemoryLink>link).pipe
            kf_link_ready(it.link, ready_of(it, kf_link_wants(it.link)))
        until = turn_plane(self.sender, self.machine.state.now)
        kf_set(&plane.wake_level, self.sender.wake_level)
        return -1.0 if kf_plane_has_news(plane, self.sender.wake_level) else until

    def number_from(self, Queues queues not None, int64_t queue_id, int64_t producer_id,
                    int16_t epoch, int32_t sequence):
        """Let a queue that has sent nothing yet begin at this sequence, as if it had sent all lower
        ones.
        """
        cdef kf_queue* queue = queues.queue(queue_id)
        queue.producer_id = producer_id
        queue.epoch = epoch
        queue.next_sequence = sequence
        queue.single = True  # as for any first batch

    def begin_flush(self):
        """Count a waiting flush, as Queues.flush does; return a serial number for `is_flushed`."""
        cdef kf_producer* producer = self.plane.plane.producer
        cdef int64_t serial = kf_producer_serial(producer)
        kf_add(&producer.flushing, 1)
        kf_producer_urge(producer)
        return serial

    def end_flush(self):
        """End a flush that was begun."""
        kf_add(&self.plane.plane.producer.flushing, -1)

    def is_flushed(self, int64_t serial):
        """Return whether all records that the flush waits for have ended."""
        return bool(kf_producer_flushed(self.plane.plane.producer, serial))

    def pending_before(self, int64_t serial):
        """Return how many of the records that the flush waits for have not ended."""
        return kf_producer_pending_before(self.plane.plane.producer, serial)

    def ended_records(self):
        """Return how many records have ended, delivered or failed."""
        cdef kf_produce_stats* stats = &self.plane.plane.producer.stats
        return kf_counted(&stats.records_acked) + kf_counted(&stats.records_failed)

    def reserved_bytes(self):
        """Return how much of buffer.memory is taken."""
        return kf_pool_reserved(&self.plane.plane.producer.pool)
