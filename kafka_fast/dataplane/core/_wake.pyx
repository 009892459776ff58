"""The one wake of a client's users: arrivals, answers, news and ended batches all raise it.

    seen = wake.count ─► look at what is waited for ─► wake.wait(seen, …) ─► look again

What was published after the count was read ends that wait (`src_c/kf_wake.h`). So any number of
threads may wait, for whatever they like.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t

from kafka_fast.dataplane.core._plane cimport DataPlane
from kafka_fast.dataplane.core.state cimport *

cdef extern from "kf_wake.h" nogil:
    int64_t kf_wake_count(kf_wake* wake)
    bint kf_wake_wait(kf_wake* wake, int64_t seen, double seconds)

cdef double LONGEST = 3600.0  # seconds of one sleep


cdef class Wake:
    """Any thread.

    Args:
        plane: Whose data plane raises it, too.
    """

    def __init__(self, DataPlane plane not None):
        self.plane = plane

    @property
    def count(self):
        """How often it was raised: to be read before what is waited for is looked at."""
        return kf_wake_count(&self.plane.plane.wake)

    def raise_(self):
        """Have all who wait look again."""
        kf_plane_wake_users(self.plane.plane)

    def wait(self, int64_t seen, double seconds, bint in_main=True):
        """Sleep until it was raised since `count` was `seen`, at most so many seconds.

        Without the GIL. In the main thread, the only one for which signals matter, in slices, which
        look for them.
        """
        cdef kf_plane* plane = self.plane.plane
        cdef double deadline = plane.env.now(plane.env.context) + seconds
        cdef double slice = KF_WAIT_SLICE if in_main else LONGEST
        cdef double left = seconds
        cdef bint raised
        while left > 0.0:
            with nogil:
                raised = kf_wake_wait(&plane.wake, seen, min(slice, left))
            PyErr_CheckSignals()
            if raised:
                return
            left = deadline - plane.env.now(plane.env.context)

    def watch(self, bint watches):
        """Have the environment's `wake_observers` called, too; once for each `watch(True)`."""
        kf_add(&self.plane.plane.wake.watchers, 1 if watches else -1)
