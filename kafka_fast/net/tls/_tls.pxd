"""TLS contexts and handshakes."""

from libc.stdint cimport int32_t

from kafka_fast.dataplane.core.state cimport kf_mutex
from kafka_fast.net.posix cimport pthread_t
from kafka_fast.net.tls.tls cimport kf_tls, kf_tls_context, kf_tls_failure


# One handshake. The thread owns it while it runs; `is_dropped` is guarded by the lock.
ctypedef struct handshake:
    handshake* next
    int32_t link_id
    int32_t node_id
    int fd
    char* name              # of the host
    bint is_ip
    bint checks_host
    double deadline
    kf_tls_context* context  # a reference of its own
    kf_tls* tls             # NULL: not begun, or taken
    short events            # for poll(2)
    bint is_ready           # the thread is to go on with it
    bint has_ended
    bint is_fine
    bint is_dropped
    kf_tls_failure failure


# What the control thread and `kf-tls` share.
ctypedef struct shared_state:
    kf_mutex lock
    handshake* added        # not yet seen by the thread
    handshake* running      # the thread's, who alone changes the list
    handshake* ended        # for the control thread
    int event               # wakes the thread
    int done_event          # wakes the control thread
    int stopping


cdef class TlsContext:
    cdef kf_tls_context* context
    cdef bint checks_host


cdef class Handshakes:
    cdef shared_state state
    cdef pthread_t thread
    cdef bint is_running
    cdef int owner_pid

    cdef void end(self)
