"""TLS contexts, and the thread `kf-tls`, which does all handshakes of a client without the GIL.

    control thread ── begin ──► added ──► ┌────────┐ ──► ended ── take ──► control thread ─► Pump
                   ── drop ─────────────► │ kf-tls │
    sockets ────── poll(2) ─────────────► └────────┘

The thread starts with the first handshake. It owns the sockets until their handshakes have ended,
and raises an event for each that has. `take_ended` hands the good ones to the data plane.

Thread: the control thread, unless said otherwise. A `TlsContext` is made by any thread.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int32_t, uint64_t, uint8_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport strdup

from kafka_fast.dataplane.core.link cimport KF_IO_WANT_READ, KF_IO_WANT_WRITE
from kafka_fast.dataplane.core.state cimport kf_lock, kf_mutex, kf_unlock
from kafka_fast.dataplane.core.structs cimport kf_link_io
from kafka_fast.net._pump cimport Pump, socket_io
from kafka_fast.net.posix cimport *
from kafka_fast.net.tls.tls cimport *

import errno
import os

from kafka_fast.errors import UsageError
from kafka_fast.net.tls.causes import Failure

cdef extern from "kf_sync.h" nogil:
    void kf_mutex_init(kf_mutex* mutex)
    void kf_mutex_destroy(kf_mutex* mutex)

LOADED = KF_TLS_LOADED
EMPTY = KF_TLS_EMPTY
MALFORMED = KF_TLS_MALFORMED
PASSWORD = KF_TLS_PASSWORD
MISMATCH = KF_TLS_MISMATCH
REFUSED = KF_TLS_REFUSED

cdef enum:
    TAKEN_AT_ONCE = 4     # handshakes in a turn of the control thread, which holds the GIL

cdef const kf_tls_library* library = kf_tls_library_here()


def library_version():
    """Return the version of OpenSSL; None: this build has none."""
    return None if library == NULL else library.version().decode()


# ---- contexts ----

cdef const char* or_null(bytes text):
    """Return an object's bytes, valid as long as the object is; NULL for None."""
    if text is None:
        return NULL
    return PyBytes_AS_STRING(text)


cdef class TlsContext:
    """What all connections of a client share. Filled by one thread, then never changed.

    The methods that read certificates or keys return LOADED or what is wrong.

    Args:
        minimum: oldest version, as on the wire (0x0303: TLS 1.2).
        maximum: newest version.
        verifies: whether the peer's certificate must be trusted.
        checks_host: whether it must name the host.
    """

    def __cinit__(self, *, int minimum, int maximum, bint verifies, bint checks_host):
        if library == NULL:
            raise UsageError("this build has no OpenSSL")
        self.checks_host = checks_host and verifies
        self.context = library.context_new(minimum, maximum, verifies)
        if self.context == NULL:
            raise MemoryError

    @staticmethod
    def reason():
        """Return OpenSSL's words for what it refused last in this thread."""
        cdef char words[KF_TLS_REASON_SIZE]
        library.reason(words, KF_TLS_REASON_SIZE)
        return words.decode(errors="replace")

    def suites(self, bytes tls12, bytes tls13):
        """Choose suites, in lists with colons; None leaves them. Return whether any is known."""
        return library.suites(self.context, or_null(tls12), or_null(tls13))

    def trust(self, bytes data, bytes password):
        """Trust the certificates of a PEM, DER or PKCS12 file."""
        return library.trust(self.context, <const uint8_t*>PyBytes_AS_STRING(data), len(data),
                             or_null(password))

    def trust_system(self):
        """Trust what OpenSSL does, where SSL_CERT_FILE and SSL_CERT_DIR say."""
        return library.trust_system(self.context)

    def trust_at(self, bytes file, bytes folder):
        """Trust the certificates of a file and of a folder; either may be None."""
        return library.trust_at(self.context, or_null(file), or_null(folder))

    def revoke(self, bytes pem):
        """Refuse the certificates of these revocation lists."""
        return library.revoke(self.context, <const uint8_t*>PyBytes_AS_STRING(pem), len(pem))

    def certify(self, bytes data):
        """Show this certificate, with the chain behind it: PEM, or one DER for each call."""
        return library.certify(self.context, <const uint8_t*>PyBytes_AS_STRING(data), len(data))

    def key(self, bytes data, bytes password):
        """Use this private key: PEM or DER."""
        return library.key(self.context, <const uint8_t*>PyBytes_AS_STRING(data), len(data),
                           or_null(password))

    def identity(self, bytes pkcs12, bytes password):
        """Show the certificate of a PKCS12 file, and use its key."""
        return library.identity(self.context, <const uint8_t*>PyBytes_AS_STRING(pkcs12),
                                len(pkcs12), or_null(password))

    def log_keys(self, int fd):
        """Write the sessions' keys to a file, which is this context's from here on.

        Raises:
            OSError: it cannot be written; it is closed.
        """
        cdef int failed = library.log_keys(self.context, fd)
        if failed:
            close(fd)
            raise OSError(failed, os.strerror(failed))

    @property
    def trusted_until(self):
        """The trusted certificate that ends first, as (subject, Unix seconds); None: none."""
        return expiry(library.trusted_until(self.context))

    @property
    def certified_until(self):
        """The own certificate, or one of its chain, in the same form."""
        return expiry(library.certified_until(self.context))

    def __dealloc__(self):
        if self.context != NULL:
            library.context_release(self.context)


cdef expiry(const kf_tls_expiry* first):
    if first.subject[0] == 0:
        return None
    return first.subject.decode(errors="replace"), first.not_after


# ---- handshakes ----

cdef void handshake_free(handshake* it) noexcept nogil:
    """Free a handshake, and its connection unless that has been taken."""
    if it.tls != NULL:
        library.drop(it.tls)
    elif it.fd >= 0:
        close(it.fd)
    library.context_release(it.context)
    free(it.name)
    free(it)


cdef void handshake_step(handshake* it, double now) noexcept nogil:
    """Go on with a handshake that has something to do, and note how it ended if it has."""
    cdef kf_link_io below
    cdef int result
    if it.tls == NULL:
        below = socket_io(it.fd)
        it.tls = library.connect(it.context, &below, it.name, it.is_ip, it.checks_host)
        if it.tls == NULL:
            it.fd = -1
            it.has_ended = True
            it.failure.error = ENOMEM
            return
    result = library.handshake(it.tls, &it.failure)
    if result == KF_IO_WANT_READ:
        it.events = POLLIN
    elif result == KF_IO_WANT_WRITE:
        it.events = POLLOUT
    else:
        it.has_ended = True
        it.is_fine = result == 0
    if not it.has_ended and now >= it.deadline:
        it.has_ended = True
        it.failure.late = True


cdef void collect(shared_state* state, handshake** running) noexcept nogil:
    """Take what was added, and drop what nobody wants any more."""
    cdef handshake* it
    cdef handshake** at = running
    kf_lock(&state.lock)
    while state.added != NULL:
        it = state.added
        state.added = it.next
        it.next = running[0]
        running[0] = it
    while at[0] != NULL:
        it = at[0]
        if it.is_dropped:
            at[0] = it.next
            handshake_free(it)
        else:
            at = &it.next
    state.running = running[0]
    kf_unlock(&state.lock)


cdef void hand_back(shared_state* state, handshake** running) noexcept nogil:
    """Move what has ended to the end of `ended`."""
    cdef handshake* it
    cdef handshake** at = running
    cdef handshake** last
    kf_lock(&state.lock)
    last = &state.ended
    while last[0] != NULL:
        last = &last[0].next
    while at[0] != NULL:
        it = at[0]
        if it.has_ended:
            at[0] = it.next
            it.next = NULL
            last[0] = it
            last = &it.next
        else:
            at = &it.next
    state.running = running[0]
    kf_unlock(&state.lock)


cdef double seconds_now() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return now.tv_sec + now.tv_nsec * 1e-9


cdef bint watch_all(shared_state* state, handshake* running, pollfd** fds,
                    int* capacity) noexcept nogil:
    """Sleep until a connection, a command or a deadline; mark the handshakes that can go on."""
    cdef handshake* it = running
    cdef pollfd* larger
    cdef double until = 0.0
    cdef double left
    cdef uint64_t drained
    cdef int timeout = -1
    cdef int count = 1
    while it != NULL:
        count += 1
        if until == 0.0 or it.deadline < until:
            until = it.deadline
        it = it.next
    if count > capacity[0]:
        larger = <pollfd*>realloc(fds[0], 2 * count * sizeof(pollfd))
        if larger == NULL:
            return False
        fds[0] = larger
        capacity[0] = 2 * count
    fds[0][0].fd = state.event
    fds[0][0].events = POLLIN
    count = 1
    it = running
    while it != NULL:
        fds[0][count].fd = it.fd
        fds[0][count].events = it.events
        fds[0][count].revents = 0
        count += 1
        it = it.next
    if until != 0.0:
        left = max(0.0, until - seconds_now())
        timeout = <int>min(left * 1000 + 1, 60000.0)
    if poll(fds[0], count, timeout) < 0:
        return True  # nobody is marked; the next turn polls again
    if fds[0][0].revents != 0:
        eventfd_read(state.event, &drained)
    count = 1
    it = running
    while it != NULL:
        it.is_ready = fds[0][count].revents != 0
        count += 1
        it = it.next
    return True


cdef void* handshakes_main(void* argument) noexcept nogil:
    """Run `kf-tls`."""
    cdef shared_state* state = <shared_state*>argument
    cdef handshake* running = NULL
    cdef handshake* it
    cdef handshake* following
    cdef pollfd* fds = NULL
    cdef int capacity = 0
    cdef double now
    while not atomic_load_int(&state.stopping, ATOMIC_SEQ_CST):
        collect(state, &running)
        now = seconds_now()
        it = running
        while it != NULL:
            following = it.next
            if it.is_ready or now >= it.deadline:
                handshake_step(it, now)
                if it.has_ended:  # handed back at once: the steps of the others take long
                    hand_back(state, &running)
                    eventfd_write(state.done_event, 1)
            it = following
        if not watch_all(state, running, &fds, &capacity):
            poll(NULL, 0, 1)  # there is no memory for poll(2)'s set
    free(fds)
    return NULL


cdef extern from "<errno.h>" nogil:
    int ENOMEM

cdef extern from * nogil:
    int atomic_load_int "__atomic_load_n"(int* value, int order)
    void atomic_store_int "__atomic_store_n"(int* value, int to, int order)
    int ATOMIC_SEQ_CST "__ATOMIC_SEQ_CST"


cdef class Handshakes:
    """The handshakes of one client, and their thread."""

    def __cinit__(self):
        if library == NULL:
            raise UsageError("this build has no OpenSSL")
        self.owner_pid = getpid()
        self.state.event = self.state.done_event = -1
        kf_mutex_init(&self.state.lock)
        self.state.event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)
        self.state.done_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)
        if self.state.event < 0 or self.state.done_event < 0:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    @property
    def event(self):
        """File descriptor that is readable when a handshake has ended."""
        return self.state.done_event

    def begin_handshake(self, TlsContext context not None, int32_t link_id, int32_t node_id, int fd,
                        bytes name not None, bint is_ip, double deadline):
        """Start a handshake on a connected socket, which belongs to this object from now on.

        Args:
            context: for this connection.
            link_id: the link's id.
            node_id: the node at the other side.
            fd: the socket.
            name: what the certificate must name: a host or an IP address.
            is_ip: whether it is an address.
            deadline: monotonic seconds by which the handshake must have ended.

        Raises:
            OSError: the thread could not be started.
        """
        cdef int failed
        cdef handshake* it = <handshake*>calloc(1, sizeof(handshake))
        cdef char* copy = strdup(PyBytes_AS_STRING(name))
        if it == NULL or copy == NULL:
            free(it)
            free(copy)
            close(fd)
            raise MemoryError
        it.link_id = link_id
        it.node_id = node_id
        it.fd = fd
        it.name = copy
        it.is_ip = is_ip
        it.checks_host = context.checks_host
        it.context = library.context_share(context.context)
        it.deadline = deadline
        it.is_ready = True
        it.events = POLLIN
        if not self.is_running:
            failed = start_thread(&self.thread, b"kf-tls", handshakes_main, &self.state)
            if failed:
                handshake_free(it)
                raise OSError(failed, os.strerror(failed))
            self.is_running = True
        kf_lock(&self.state.lock)
        it.next = self.state.added
        self.state.added = it
        kf_unlock(&self.state.lock)
        eventfd_write(self.state.event, 1)

    def drop_handshake(self, int32_t link_id):
        """Give up a handshake that `take_ended` has not returned."""
        cdef handshake* it
        cdef handshake* lists[3]
        cdef int i
        kf_lock(&self.state.lock)
        lists[0] = self.state.added
        lists[1] = self.state.running
        lists[2] = self.state.ended
        for i in range(3):
            it = lists[i]
            while it != NULL:
                if it.link_id == link_id:
                    it.is_dropped = True
                it = it.next
        kf_unlock(&self.state.lock)
        eventfd_write(self.state.event, 1)

    def take_ended(self, Pump pump not None):
        """Hand connections whose handshake is done to the data plane, a few at a time.

        If there are more, `event` stays raised.

        Returns:
            A list of (link id, None or a `Failure`), one for each handshake that has ended.
        """
        cdef uint64_t count
        cdef handshake* it
        cdef int _
        ended = []
        eventfd_read(self.state.done_event, &count)
        for _ in range(TAKEN_AT_ONCE):
            kf_lock(&self.state.lock)
            it = self.state.ended
            if it != NULL:
                self.state.ended = it.next
            kf_unlock(&self.state.lock)
            if it == NULL:
                return ended
            if not it.is_dropped:
                ended.append((it.link_id, hand_over(pump, it)))
            handshake_free(it)
        eventfd_write(self.state.done_event, 1)
        return ended

    def wake(self):
        """Raise `event`; any thread."""
        eventfd_write(self.state.done_event, 1)

    def stop(self):
        """End the thread, and give up all handshakes."""
        self.end()

    cdef void end(self):
        cdef pthread_t thread = self.thread
        if getpid() != self.owner_pid:
            return
        if self.is_running:
            self.is_running = False
            atomic_store_int(&self.state.stopping, 1, ATOMIC_SEQ_CST)
            eventfd_write(self.state.event, 1)
            with nogil:
                pthread_join(thread, NULL)
        free_all(&self.state.added)
        free_all(&self.state.running)
        free_all(&self.state.ended)

    def __dealloc__(self):
        self.end()
        for fd in (self.state.event, self.state.done_event):
            if fd >= 0:
                close(fd)


cdef void free_all(handshake** first) noexcept nogil:
    cdef handshake* it
    while first[0] != NULL:
        it = first[0]
        first[0] = it.next
        handshake_free(it)


cdef hand_over(Pump pump, handshake* it):
    """Make a link of a connection; return None, or why that is impossible."""
    cdef kf_link_io io
    if not it.is_fine:
        return Failure(
            reason=it.failure.reason.decode(errors="replace"),
            verify=it.failure.verify,
            error=it.failure.error,
            is_closed=it.failure.closed,
            was_asked=it.failure.asked,
            is_late=it.failure.late,
            subject=it.failure.subject.decode(errors="replace"),
            names=it.failure.names.decode(errors="replace"),
            not_before=it.failure.not_before,
            not_after=it.failure.not_after,
            head=it.failure.head[:it.failure.head_size],
        )
    io = library.io(it.tls)
    it.tls = NULL
    try:
        pump.add(it.link_id, it.node_id, io, it.fd)
    except OSError as error:
        return Failure(error=error.errno)
    finally:
        it.fd = -1
    return None
