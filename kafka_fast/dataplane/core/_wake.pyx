"""The one wake of a client's users: arrivals, answers, news and ended batches all raise it.

    seen = wake.count ─► look at what is waited for ─► wake.wait(seen, …) ─► look again

News that is published after the count was read ends that wait (`src_c/kf_wake.h`). So any number of
threads may wait, whatever they wait for.
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
    """What users' threads sleep on. Any thread may call its methods.

    Args:
        plane: the data plane, which raises the wake, too.
    """

    def __init__(self, DataPlane plane not None):
        self.plane = plane

    @property
    def count(self):
        """How often it was raised. Read this before you look at what you wait for."""
        return kf_wake_count(&self.plane.plane.wake)

    def raise_(self):
        """Have all waiters look again."""
        kf_plane_wake_users(self.plane.plane)

    def wait(self, int64_t seen, double seconds, bint in_main=True):
        """Sleep until it was raised since `count` was `seen`, at most so many seconds.

        The GIL is released meanwhile. In the main thread, the only one that handles signals, the
        sleep is cut into slices, and signals are handled between them.
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
        """Have each raise call the environment's `wake_observers`, until as many `watch(False)`."""
        kf_add(&self.plane.plane.wake.watchers, 1 if watches else -1)
