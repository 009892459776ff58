"""The exit status of a process that has lost records (exit.status.on.loss).

    Python's atexit ─► the interpreter's end ─► C's exit() ─► C's exit handlers ─► the step here

Python has no way to change the status once its end has begun. So the last step is one of C's: it
comes when the interpreter has ended and has flushed its files. It flushes C's and ends the process.
Other handlers of C that were registered before ours do not run then, nor do destructors of static
objects in C++. A status other than 0 stays: an exception or `sys.exit(3)` has set it.

Thread: any, with the GIL.
"""

cdef extern from *:
    """
    #include <stdio.h>
    #include <stdlib.h>
    #include <unistd.h>

    static int kf_exit_status = 0;
    static int kf_exit_pid = 0; /* a child that was forked since has lost nothing itself */

    static void kf_end_process(int status) {
        if (status == 0 && kf_exit_status != 0 && kf_exit_pid == getpid()) {
            fflush(NULL);
            _exit(kf_exit_status);
        }
    }

    #ifdef __GLIBC__
    static void kf_end_process_with(int status, void *unused) {
        (void)unused;
        kf_end_process(status);
    }

    static int kf_register_end(void) {
        return on_exit(kf_end_process_with, NULL);
    }
    #else
    /* Other C libraries tell no handler the status, so theirs is taken for 0. */
    static void kf_end_process_blindly(void) {
        kf_end_process(0);
    }

    static int kf_register_end(void) {
        return atexit(kf_end_process_blindly);
    }
    #endif
    """
    int kf_exit_status
    int kf_exit_pid
    int kf_register_end()

from kafka_fast.net.posix cimport getpid

cdef bint is_registered = False  # also in a forked child: C's handlers are inherited


def prepare():
    """Register the last step: as late as possible, but before there is anything to tell."""
    global is_registered
    if is_registered:
        return
    if kf_register_end() != 0:
        raise MemoryError
    is_registered = True


def raise_to(int status):
    """Have this process end with this status, or with a higher one that it was told before."""
    global kf_exit_status, kf_exit_pid
    if kf_exit_pid != getpid():
        kf_exit_status = 0
    kf_exit_pid = getpid()
    kf_exit_status = max(kf_exit_status, status)


def told():
    """Return the status that this process was told to end with; 0: none."""
    return kf_exit_status if kf_exit_pid == getpid() else 0
