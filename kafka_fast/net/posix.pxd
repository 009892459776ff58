"""The C functions of the system that net/ uses: clocks, poll, eventfd, sockets, threads."""

from libc.stdint cimport uint64_t

from kafka_fast.dataplane.core.state cimport iovec


cdef extern from "<time.h>" nogil:
    struct timespec:
        long tv_sec
        long tv_nsec
    int CLOCK_MONOTONIC
    int CLOCK_REALTIME_COARSE
    int clock_gettime(int clock, timespec* into)


cdef extern from "<poll.h>" nogil:
    struct pollfd:
        int fd
        short events
        short revents
    enum:
        POLLIN
        POLLOUT
    int poll(pollfd* fds, unsigned long count, int timeout)
    int ppoll(pollfd* fds, unsigned long count, const timespec* timeout, void* mask)


cdef extern from "<sys/eventfd.h>" nogil:
    enum:
        EFD_CLOEXEC
        EFD_NONBLOCK
    int eventfd(unsigned int initial, int flags)
    int eventfd_write(int fd, uint64_t value)
    int eventfd_read(int fd, uint64_t* value)


cdef extern from "<unistd.h>" nogil:
    int close(int fd)
    int getpid()


cdef extern from "<sys/socket.h>" nogil:
    struct msghdr:
        iovec* msg_iov
        size_t msg_iovlen
    enum:
        MSG_NOSIGNAL
        MSG_DONTWAIT
        SHUT_RDWR
    ssize_t sendmsg(int fd, const msghdr* message, int flags)
    ssize_t recv(int fd, void* into, size_t size, int flags)
    int shutdown(int fd, int how)


cdef extern from "<pthread.h>" nogil:
    ctypedef unsigned long pthread_t
    int pthread_join(pthread_t thread, void** result)


# Threads that no signal reaches: a signal must interrupt a Python thread. Their stacks have one
# size everywhere: by default a C library decides, and musl's 128 KiB are little for OpenSSL.
cdef extern from * nogil:
    """
    #include <pthread.h>
    #include <signal.h>

    #define KF_THREAD_STACK_SIZE (1024 * 1024)

    static int kf_start_thread(pthread_t *thread, const char *name, void *(*run)(void *),
                               void *argument) {
        pthread_attr_t attributes;
        int failed = pthread_attr_init(&attributes);
        if (failed) {
            return failed;
        }
        failed = pthread_attr_setstacksize(&attributes, KF_THREAD_STACK_SIZE);
        if (!failed) {
            sigset_t all, before;
            sigfillset(&all);
            pthread_sigmask(SIG_SETMASK, &all, &before);
            failed = pthread_create(thread, &attributes, run, argument);
            pthread_sigmask(SIG_SETMASK, &before, NULL);
        }
        pthread_attr_destroy(&attributes);
    #if defined(__linux__)
        if (!failed) {
            pthread_setname_np(*thread, name);
        }
    #else
        (void)name;
    #endif
        return failed;
    }
    """
    # Returns 0 or an errno. The name has at most 15 characters.
    int start_thread "kf_start_thread"(pthread_t* thread, const char* name,
                                       void* (*run)(void*) noexcept nogil, void* argument)
