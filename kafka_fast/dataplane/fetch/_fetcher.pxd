"""When to fetch: what each turn of the data plane does for consumers."""

from kafka_fast.dataplane.core._sender_state cimport sender_state
from kafka_fast.dataplane.core.link cimport kf_link, kf_request
from kafka_fast.dataplane.core.structs cimport kf_stream


# Queue a Fetch on the link if it is time for one and there is room.
cdef void fetch(sender_state* state, kf_link* link, double now) noexcept nogil

# When the link's next Fetch may go out if nothing happens before; 0: never.
cdef double fetch_deadline(const kf_link* link) noexcept nogil

# Take the whole answer, which stands in the session's frame. False: the link must be closed.
cdef bint handle_fetch(sender_state* state, kf_link* link, const kf_request* request,
                       double now) noexcept nogil

# The Fetch in flight has ended, answered or not: its reservation goes back.
cdef void end_fetch(sender_state* state, kf_link* link) noexcept nogil

# Fetch the stream over this link from now on; NULL: over none.
cdef void move_stream(kf_stream* stream, kf_link* link) noexcept nogil

# The link is about to be freed: its streams stop, and are reported.
cdef void stop_streams(sender_state* state, kf_link* link) noexcept nogil

# Report one stream as stopped, as it was started under `generation`.
cdef void report_stopped(sender_state* state, kf_stream* stream) noexcept nogil
