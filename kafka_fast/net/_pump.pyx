"""The data plane's thread and the machine under it: poll, recv, sendmsg, eventfd, clocks.

The thread is native, never takes the GIL and touches no Python object. It turns the data plane,
sleeps in poll(2) until a socket, a caller or a deadline wakes it, and turns on. All signals are
blocked in this thread, so that they reach a Python thread. A caller that stops the thread joins it
without the GIL.
"""

cimport cython
from libc.errno cimport EAGAIN, EINTR, ENOMEM, errno
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, intptr_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from kafka_fast.dataplane.core._sender_state cimport sender_state
from kafka_fast.dataplane.core._plane cimport DataPlane, Environment
from kafka_fast.dataplane.core._sender cimport turn_plane
from kafka_fast.dataplane.core.link cimport *
from kafka_fast.dataplane.core.state cimport *
from kafka_fast.net._compressor cimport (
    Compressor,
    Handover,
    compressor_submit,
    handover_submit,
)
from kafka_fast.net.posix cimport *

import os

from kafka_fast.errors import UsageError

cdef extern from "kf_sync.h" nogil:
    void kf_mutex_init(kf_mutex* mutex)

cdef extern from * nogil:
    int atomic_load_int "__atomic_load_n"(int* value, int order)
    void atomic_store_int "__atomic_store_n"(int* value, int to, int order)
    int ATOMIC_SEQ_CST "__ATOMIC_SEQ_CST"


# ---- the environment's functions ----

cdef double monotonic(void* context) noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return now.tv_sec + now.tv_nsec * 1e-9


cdef int64_t wall_ms(void* context) noexcept nogil:
    """Read the coarse clock: its grain of 1 to 4 ms will do for timestamps in ms, and it costs a
    third of the exact one.
    """
    cdef timespec now
    clock_gettime(CLOCK_REALTIME_COARSE, &now)
    return <int64_t>now.tv_sec * 1000 + now.tv_nsec // 1000000


cdef void raise_event(int fd) noexcept nogil:
    eventfd_write(fd, 1)  # may fail only if the counter is full, which is as good as raised


cdef void wake_data(void* context) noexcept nogil:
    raise_event((<machine_state*>context).data_event)


cdef void wake_control(void* context) noexcept nogil:
    raise_event((<machine_state*>context).control_event)


cdef void wake_observers(void* context) noexcept nogil:
    """Wake the callback thread and all event loops; each looks for its own ended batches."""
    cdef machine_state* state = <machine_state*>context
    cdef loop_event* loop
    raise_event(state.observer_event)
    kf_lock(&state.loops_lock)
    loop = state.loops
    while loop != NULL:
        raise_event(loop.fd)
        loop = loop.next
    kf_unlock(&state.loops_lock)


cdef void submit(void* context, kf_batch* batch) noexcept nogil:
    cdef machine_state* state = <machine_state*>context
    state.compress(state.compressor, batch)


@cython.no_gc_clear  # the data plane's thread may still hand batches to the compressor
cdef class Machine(Environment):
    """Linux under the planes."""

    def __cinit__(self):
        memset(&self.state, 0, sizeof(machine_state))
        kf_mutex_init(&self.state.loops_lock)
        self.state.data_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)
        self.state.control_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)
        self.state.observer_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)
        if min(self.state.data_event, self.state.control_event, self.state.observer_event) < 0:
            raise OSError(errno, os.strerror(errno))
        self.env.now = monotonic
        self.env.wall_ms = wall_ms
        self.env.wake_data = wake_data
        self.env.wake_control = wake_control
        self.env.wake_observers = wake_observers
        self.env.submit = submit
        self.env.context = &self.state

    def use_compressor(self, Compressor compressor):
        """Let this pool compress batches. Called before the data plane starts."""
        self.compressor = compressor
        self.state.compressor = compressor.state
        self.state.compress = compressor_submit

    def use_handover(self, Handover handover):
        """Let the control thread compress batches. Called before the data plane starts."""
        handover.attach(&self.env)
        self.compressor = handover
        self.state.compressor = handover.state
        self.state.compress = handover_submit

    @property
    def control_event(self):
        """File descriptor that is readable while events wait for the control plane."""
        return self.state.control_event

    def wake_control(self):
        """End the control plane's sleep."""
        wake_control(&self.state)

    def wake_callbacks(self):
        """End the callback thread's sleep."""
        raise_event(self.state.observer_event)

    def clear_control(self):
        """Make `control_event` unreadable until the next wake-up."""
        cdef uint64_t count
        return eventfd_read(self.state.control_event, &count) == 0

    def wait_observers(self, double timeout):
        """Sleep until batches with observers have ended, or `timeout` seconds."""
        wait_readable(self.state.observer_event, timeout)

    def close(self):
        """Close the event descriptors; no thread may use them any more."""
        close_events(&self.state)

    def __dealloc__(self):
        close_events(&self.state)


cdef void close_events(machine_state* state) noexcept nogil:
    close_event(&state.data_event)
    close_event(&state.control_event)
    close_event(&state.observer_event)


cdef void close_event(int* event) noexcept nogil:
    if event[0] >= 0:
        close(event[0])
    event[0] = -1


@cython.no_gc_clear  # __dealloc__ needs the machine
cdef class LoopEvent:
    """An event among an event loop's readers, raised when batches have ended."""

    def __cinit__(self, Machine machine):
        self.machine = machine
        self.owner_pid = getpid()
        self.event.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)
        if self.event.fd < 0:
            raise OSError(errno, os.strerror(errno))
        kf_lock(&machine.state.loops_lock)
        self.event.next = machine.state.loops
        machine.state.loops = &self.event
        kf_unlock(&machine.state.loops_lock)

    @property
    def fd(self):
        """File descriptor that is readable while the event is raised."""
        return self.event.fd

    def raise_(self):
        """End the loop's sleep; any thread."""
        raise_event(self.event.fd)

    def clear(self):
        """Make `fd` unreadable until the event is raised again."""
        cdef uint64_t count
        eventfd_read(self.event.fd, &count)

    def __dealloc__(self):
        cdef loop_event** place
        if self.event.fd < 0:
            return
        if getpid() == self.owner_pid:  # in a forked child the lock may be held forever
            kf_lock(&self.machine.state.loops_lock)
            place = &self.machine.state.loops
            while place[0] != &self.event:
                place = &place[0].next
            place[0] = self.event.next
            kf_unlock(&self.machine.state.loops_lock)
        close(self.event.fd)


cdef int wait_readable(int event, double timeout) except -1:
    cdef pollfd waiting
    cdef uint64_t count
    waiting.fd = event
    waiting.events = POLLIN
    with nogil:
        if poll(&waiting, 1, <int>(timeout * 1000)) > 0:
            eventfd_read(event, &count)
    return 0


# ---- a link over a socket ----

cdef int64_t socket_write(void* context, const iovec* pieces, int count, int* error) noexcept nogil:
    cdef msghdr message
    cdef ssize_t sent
    memset(&message, 0, sizeof(message))
    message.msg_iov = <iovec*>pieces
    message.msg_iovlen = count
    while True:
        sent = sendmsg(<int><intptr_t>context, &message, MSG_NOSIGNAL | MSG_DONTWAIT)
        if sent >= 0:
            return sent
        if errno == EAGAIN:
            return KF_IO_WANT_WRITE
        if errno != EINTR:
            error[0] = errno
            return KF_IO_ERROR


cdef int64_t socket_read(void* context, void* into, size_t size, int* error) noexcept nogil:
    cdef ssize_t got
    while True:
        got = recv(<int><intptr_t>context, into, size, MSG_DONTWAIT)
        if got >= 0:
            return got
        if errno == EAGAIN:
            return KF_IO_WANT_READ
        if errno != EINTR:
            error[0] = errno
            return KF_IO_ERROR


cdef void socket_close(void* context) noexcept nogil:
    """Shut the socket down. The kernel has no reference to our memory: sendmsg copies."""
    shutdown(<int><intptr_t>context, SHUT_RDWR)


cdef void socket_dispose(void* context) noexcept nogil:
    close(<int><intptr_t>context)


cdef kf_link_io socket_io(int fd) noexcept nogil:
    cdef kf_link_io io
    io.write = socket_write
    io.read = socket_read
    io.pending = NULL
    io.explain = NULL
    io.close = socket_close
    io.dispose = socket_dispose
    io.context = <void*><intptr_t>fd
    return io


# ---- the thread ----

cdef enum:
    NAP_MS = 1

cdef bint reserve(poller* it, int count) noexcept nogil:
    """Make room for `count` descriptors; return False if there is no memory for them."""
    cdef int capacity = count * 2 + 8
    cdef pollfd* larger
    if count <= it.capacity:
        return True
    larger = <pollfd*>realloc(it.fds, capacity * sizeof(pollfd))
    if larger == NULL:
        return False
    it.fds = larger
    it.capacity = capacity
    return True


cdef short events_of(const kf_link* link) noexcept nogil:
    """Return what poll(2) is to wait for."""
    cdef int wants = kf_link_wants(link)
    return (POLLIN if wants & KF_WANT_READ else 0) | (POLLOUT if wants & KF_WANT_WRITE else 0)


cdef int ready_of(short revents) noexcept nogil:
    """Translate what poll(2) reports. After an error the link reads and writes, to learn it."""
    if revents & ~(POLLIN | POLLOUT):
        return KF_WANT_READ | KF_WANT_WRITE
    return (KF_WANT_READ if revents & POLLIN else 0) | (KF_WANT_WRITE if revents & POLLOUT else 0)


cdef void watch(pollfd* at, int fd, short events) noexcept nogil:
    at.fd = fd
    at.events = events
    at.revents = 0


cdef void nap(sender_state* sender, int event) noexcept nogil:
    """Sleep a moment and mark every link as readable: there is no memory for poll(2)'s set."""
    cdef kf_link* link = sender.links
    cdef uint64_t drained
    poll(NULL, 0, NAP_MS)
    eventfd_read(event, &drained)
    while link != NULL:
        link.readable = True
        link = link.next


cdef void sleep_until(poller* it, const thread_state* state, double until) noexcept nogil:
    """Sleep until a socket, a wake-up or `until` (0: no limit), and mark the readable links."""
    cdef sender_state* sender = state.sender
    cdef kf_link* link = sender.links
    cdef timespec timeout
    cdef uint64_t drained
    cdef double left
    cdef int count = 2
    cdef int i = 2
    while link != NULL:
        count += 1
        link = link.next
    if not reserve(it, count):
        nap(sender, state.event)
        return
    watch(&it.fds[0], state.event, POLLIN)
    watch(&it.fds[1], state.other, POLLIN)
    link = sender.links
    while link != NULL:
        watch(&it.fds[i], link.fd, events_of(link))
        i += 1
        link = link.next
    if until == 0.0:
        ppoll(it.fds, count, NULL, NULL)
    else:
        left = max(0.0, until - monotonic(NULL))
        timeout.tv_sec = <long>left
        timeout.tv_nsec = <long>((left - <long>left) * 1e9)
        ppoll(it.fds, count, &timeout, NULL)
    if it.fds[0].revents != 0:
        eventfd_read(state.event, &drained)
    i = 2
    link = sender.links
    while link != NULL:
        kf_link_ready(link, ready_of(it.fds[i].revents))
        i += 1
        link = link.next


cdef void turn(poller* it, const thread_state* state, double deadline) noexcept nogil:
    """Step once, and sleep until there is something to do, or `deadline` (0: none)."""
    cdef double until = turn_plane(state.sender, monotonic(NULL))
    if until == 0.0 or 0.0 < deadline < until:
        until = deadline
    kf_set(&state.plane.wake_level, state.sender.wake_level)
    kf_fence()  # pairs with the fence of a caller that publishes, then reads the level
    if not kf_plane_has_news(state.plane, state.sender.wake_level):
        sleep_until(it, state, until)
    kf_set(&state.plane.wake_level, KF_WAKE_NOBODY)


cdef void* data_main(void* argument) noexcept nogil:
    """The data plane's thread."""
    cdef thread_state state = (<thread_state*>argument)[0]
    cdef poller it
    free(argument)
    memset(&it, 0, sizeof(poller))
    while not atomic_load_int(state.stopping, ATOMIC_SEQ_CST):
        turn(&it, &state, 0.0)
    free(it.fds)
    return NULL


@cython.no_gc_clear  # __dealloc__ needs the machine, and the thread the plane
cdef class Pump:
    """Runs a data plane on its own thread.

    With KAFKA_FAST_DATA_PLANE=inline in the environment there is no such thread: the control
    thread calls `turn`, and takes the GIL between turns. That is slow; a failure that stays in this
    mode is no race between the two threads.

    Args:
        plane: the data plane; its environment must be `machine`.
        machine: the machine under it.

    Raises:
        UsageError: KAFKA_FAST_DATA_PLANE has an unknown value.
    """

    def __cinit__(self, DataPlane plane, Machine machine):
        self.plane = plane
        self.machine = machine
        self.owner_pid = getpid()
        self.own.sender = &plane.sender
        self.own.plane = plane.plane
        self.own.stopping = &self.stopping
        self.own.event = machine.state.data_event
        self.own.other = -1
        where = os.environ.get("KAFKA_FAST_DATA_PLANE", "thread")
        if where not in ("thread", "inline"):
            raise UsageError(f"KAFKA_FAST_DATA_PLANE is 'thread' or 'inline', not {where!r}")
        self.is_inline = where == "inline"

    def start(self):
        """Start the thread, with all signals blocked in it; do nothing if `is_inline`."""
        cdef int failed
        cdef thread_state* state
        if self.is_inline:
            return
        state = <thread_state*>realloc(NULL, sizeof(thread_state))
        if state == NULL:
            raise MemoryError
        state[0] = self.own
        failed = start_thread(&self.thread, b"kf-data", data_main, state)
        if failed:
            free(state)
            raise OSError(failed, os.strerror(failed))
        self.running = True

    def turn(self, int other, double until):
        """Step once and sleep, in place of the thread. Control thread, if `is_inline`.

        Args:
            other: file descriptor; the sleep also ends when it becomes readable.
            until: monotonic seconds at which the sleep ends; inf: without limit.
        """
        self.own.other = other
        with nogil:
            turn(&self.polled, &self.own, 0.0 if until == INFINITY else until)

    def add_link(self, int32_t link_id, int32_t node_id, int fd):
        """Hand a connected socket to the data plane, which owns it from here on.

        Raises:
            OSError: there is no memory for a link; the socket is closed.
        """
        self.add(link_id, node_id, socket_io(fd), fd)

    cdef int add(self, int32_t link_id, int32_t node_id, kf_link_io io, int fd) except -1:
        cdef kf_command* command
        cdef kf_link* link = kf_link_new(link_id, node_id, &io, fd)
        if link == NULL:
            io.dispose(io.context)
            raise OSError(ENOMEM, os.strerror(ENOMEM))
        command = kf_command_new(KF_SIDE_TRANSPORT)
        command.transport.kind = KF_COMMAND_ADD_LINK
        command.transport.add_link.link = link
        kf_plane_command(self.plane.plane, command)
        return 0

    def stop(self):
        """End the thread and wait for its end; the links stay open, but no byte moves any more."""
        cdef pthread_t thread = self.thread
        if not self.running:
            return
        if getpid() != self.owner_pid:
            raise UsageError("the data plane's thread belongs to the parent of this process")
        self.running = False
        atomic_store_int(&self.stopping, 1, ATOMIC_SEQ_CST)
        raise_event(self.machine.state.data_event)
        with nogil:
            pthread_join(thread, NULL)

    def __dealloc__(self):
        if self.running and getpid() == self.owner_pid:
            atomic_store_int(&self.stopping, 1, ATOMIC_SEQ_CST)
            raise_event(self.machine.state.data_event)
            pthread_join(self.thread, NULL)
        free(self.polled.fds)
