"""Commands about streams, carried out between two turns of the data plane.

A start that is older than the stream's generation, or than what the user wants by now, is dropped:
a newer start is on its way. A start over a link that has closed meanwhile is reported as stopped,
as if the link had closed right after it.

Thread: data plane; takes no GIL, calls no clock.
"""

from kafka_fast.dataplane.fetch._fetcher cimport move_stream, report_stopped
from kafka_fast.dataplane.core._sender_state cimport find_link
from kafka_fast.dataplane.fetch.fetch cimport *
from kafka_fast.dataplane.core.link cimport *
from kafka_fast.dataplane.core.state cimport *

# Seconds to wait for more starts, which come one by one. A Fetch for the first of them alone might
# find nothing to read, and hold the others up for fetch.max.wait.ms.
cdef double GATHER = 0.001


cdef void on_program_fetch(sender_state* state, kf_program_fetch* command,
                           double now) noexcept nogil:
    """Let the link fetch; if it does already, in another version from the next request on."""
    cdef kf_link* link = find_link(state, command.link_id)
    cdef kf_session* session = command.session
    if link == NULL:
        return
    command.session = NULL
    session.budget = state.plane.fetcher.budget
    if link.session == NULL:
        link.session = session
        return
    if link.session.successor != NULL:
        kf_session_free(link.session.successor)
    link.session.successor = session


cdef void on_add_stream(sender_state* state, kf_add_stream* command, double now) noexcept nogil:
    cdef kf_fetcher* fetcher = state.plane.fetcher
    cdef kf_stream* stream = command.stream
    command.stream = NULL  # its reference is ours now
    stream.next = fetcher.streams
    if stream.next != NULL:
        stream.next.previous = stream
    fetcher.streams = stream


cdef void on_name_stream(sender_state* state, kf_name_stream* command, double now) noexcept nogil:
    kf_stream_name(command.stream, fetch_topic_format(command.version), command.field,
                   command.field_size)


cdef void on_remove_stream(sender_state* state, kf_remove_stream* command,
                           double now) noexcept nogil:
    """Forget the stream. Sessions may know it until their next request."""
    cdef kf_fetcher* fetcher = state.plane.fetcher
    cdef kf_stream* stream = command.stream
    move_stream(stream, NULL)
    if stream.previous != NULL:
        stream.previous.next = stream.next
    else:
        fetcher.streams = stream.next
    if stream.next != NULL:
        stream.next.previous = stream.previous
    stream.next = stream.previous = NULL
    kf_stream_unref(stream)


cdef void on_start_stream(sender_state* state, kf_start_stream* command,
                          double now) noexcept nogil:
    cdef kf_stream* stream = command.stream
    cdef kf_link* link = find_link(state, command.link_id)
    if (command.generation < stream.generation
            or command.generation < kf_get_long(&stream.wanted)):
        return
    stream.generation = command.generation
    stream.position = command.offset
    stream.leader_epoch = command.leader_epoch
    stream.last_epoch = -1  # nothing was fetched from here on yet
    stream.frozen = stream.broken = False
    if link != NULL and link.session != NULL:
        move_stream(stream, link)
        link.session.not_before = max(link.session.not_before, now + GATHER)
    else:
        move_stream(stream, NULL)
        report_stopped(state, stream)


cdef void on_stop_stream(sender_state* state, kf_stop_stream* command, double now) noexcept nogil:
    """Stop the stream and report its position, unless a punt has done so already."""
    cdef kf_stream* stream = command.stream
    if stream.link == NULL or stream.generation != command.generation:
        return
    move_stream(stream, NULL)
    if not stream.frozen:
        report_stopped(state, stream)


cdef void on_pause_stream(sender_state* state, kf_pause_stream* command,
                          double now) noexcept nogil:
    command.stream.paused = command.paused
