"""A small pool of native threads that compress sealed batches.

Compression costs three to ten times as much as all other work on a record. It has threads of its
own, so that a turn of the data plane stays below a millisecond. A batch belongs to one thread while
it is compressed. The data plane sends a partition's batches in the order of sealing, whatever the
order in which they come back.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport uint8_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from kafka_fast._wire.layout cimport *
from kafka_fast.dataplane.core.state cimport *
from kafka_fast.net.posix cimport getpid, pthread_join, pthread_t, start_thread
from kafka_fast.record._compress cimport (
    codec_bound,
    codec_compress,
    codec_free,
    codec_is_native,
    codec_new,
    kf_codec,
)

import os

from kafka_fast.errors import UsageError

cdef extern from "kf_sync.h" nogil:
    ctypedef struct kf_cond:
        pass
    void kf_mutex_init(kf_mutex* mutex)
    void kf_mutex_destroy(kf_mutex* mutex)
    void kf_cond_init(kf_cond* cond)
    void kf_cond_destroy(kf_cond* cond)
    void kf_cond_wake_all(kf_cond* cond)
    void kf_cond_wait(kf_cond* cond, kf_mutex* mutex, double seconds)

cdef enum:
    THREADS_MAX = 4

cdef double IDLE_SLICE = 60.0  # kf_cond_wait needs a bound; the thread then waits again


# A batch that waits for compression.
cdef struct job:
    job* next
    kf_batch* batch


cdef struct job_list:
    kf_mutex lock
    job* first
    job** last


cdef struct compressor_state:
    job_list jobs
    kf_cond work
    bint stopping
    int codec
    int level
    int thread_count
    pthread_t threads[THREADS_MAX]


# For a Handover, which has no threads: batches wait for the control thread.
cdef struct handover_state:
    job_list jobs
    kf_env env  # wakes the control plane


# ---- jobs ----

cdef void jobs_init(job_list* self) noexcept nogil:
    kf_mutex_init(&self.lock)
    self.first = NULL
    self.last = &self.first


cdef void jobs_free(job_list* self) noexcept nogil:
    """Free the jobs that no thread took; their batches belong to the queues."""
    cdef job* following
    while self.first != NULL:
        following = self.first.next
        free(self.first)
        self.first = following
    kf_mutex_destroy(&self.lock)


cdef bint jobs_add(job_list* self, kf_batch* batch) noexcept nogil:
    """Append a batch. Without memory return False: the batch goes out uncompressed."""
    cdef job* added = <job*>malloc(sizeof(job))
    if added == NULL:
        kf_queue_coded(batch.queue, batch, NULL)
        return False
    added.next = NULL
    added.batch = batch
    kf_lock(&self.lock)
    self.last[0] = added
    self.last = &added.next
    kf_unlock(&self.lock)
    return True


# ---- one batch ----

cdef void coder_init(coder* self, int codec, int level) noexcept nogil:
    memset(self, 0, sizeof(coder))
    self.codec = codec
    self.context = codec_new(<kf_codec>codec, level)


cdef void coder_free(coder* self) noexcept nogil:
    codec_free(self.context)
    free(self.records)
    free(self.output)


cdef bint make_room(uint8_t** buffer, size_t* capacity, size_t size) noexcept nogil:
    """Let the buffer hold `size` bytes; its contents are lost."""
    if size <= capacity[0]:
        return True
    free(buffer[0])
    buffer[0] = <uint8_t*>malloc(size)
    capacity[0] = size if buffer[0] != NULL else 0
    return buffer[0] != NULL


cdef const uint8_t* in_one_piece(coder* self, const kf_batch* batch, size_t size) noexcept nogil:
    """Return the batch's records: in place if one slab holds them all, otherwise a copy."""
    if batch.slabs.next == NULL:
        return batch.slabs.data + KF_BATCH_HEADER_SIZE
    if not make_room(&self.records, &self.records_capacity, size):
        return NULL
    kf_batch_gather(batch, self.records)
    return self.records


cdef kf_slab* in_slab(const kf_batch* batch, const void* records, size_t size) noexcept nogil:
    """Copy compressed records behind room for their header; NULL if there is no memory."""
    cdef kf_pool* pool = &batch.queue.producer.pool
    cdef kf_slab* coded = kf_pool_take(pool, KF_BATCH_HEADER_SIZE + size, True)
    if coded != NULL:
        memcpy(coded.data + KF_BATCH_HEADER_SIZE, records, size)
        coded.size = KF_BATCH_HEADER_SIZE + size
    return coded


cdef kf_slab* compressed(coder* self, const kf_batch* batch) noexcept nogil:
    """Return the batch's records compressed, behind room for the header. NULL: they would not get
    smaller, or there is no memory.
    """
    cdef size_t size = kf_batch_records_size(batch)
    cdef size_t bound = codec_bound(<kf_codec>self.codec, size)
    cdef const uint8_t* records = in_one_piece(self, batch, size)
    cdef Py_ssize_t written
    if (self.context == NULL or records == NULL
            or not make_room(&self.output, &self.output_capacity, bound)):
        return NULL
    written = codec_compress(self.context, records, size, self.output, bound)
    if written < 0 or <size_t>written >= size:
        return NULL
    return in_slab(batch, self.output, written)


cdef void compress_batch(coder* self, kf_batch* batch) noexcept nogil:
    kf_queue_coded(batch.queue, batch, compressed(self, batch))


# ---- threads ----

cdef void* compressor_main(void* argument) noexcept nogil:
    """Run one thread of the pool: take the oldest batch, compress it, repeat."""
    cdef compressor_state* state = <compressor_state*>argument
    cdef job_list* jobs = &state.jobs
    cdef coder own
    cdef job* taken
    coder_init(&own, state.codec, state.level)
    kf_lock(&jobs.lock)
    while True:
        while jobs.first == NULL and not state.stopping:
            kf_cond_wait(&state.work, &jobs.lock, IDLE_SLICE)
        if jobs.first == NULL:
            break
        taken = jobs.first
        jobs.first = taken.next
        if jobs.first == NULL:
            jobs.last = &jobs.first
        kf_unlock(&jobs.lock)
        compress_batch(&own, taken.batch)
        free(taken)
        kf_lock(&jobs.lock)
    kf_unlock(&jobs.lock)
    coder_free(&own)
    return NULL


cdef void compressor_submit(void* opaque, kf_batch* batch) noexcept nogil:
    cdef compressor_state* state = <compressor_state*>opaque
    if jobs_add(&state.jobs, batch):
        kf_cond_wake_all(&state.work)


cdef void handover_submit(void* opaque, kf_batch* batch) noexcept nogil:
    cdef handover_state* state = <handover_state*>opaque
    if jobs_add(&state.jobs, batch):
        state.env.wake_control(state.env.context)


cdef class Handover:
    """Compression by Python packages, for a build without the codec's library. The control thread
    takes sealed batches, compresses them and gives them back. This is slow, and holds the GIL.
    """

    def __cinit__(self):
        self.state = <handover_state*>calloc(1, sizeof(handover_state))
        if self.state == NULL:
            raise MemoryError
        jobs_init(&self.state.jobs)

    cdef void attach(self, const kf_env* env):
        self.state.env = env[0]

    def work(self, compress, report):
        """Compress the batches that were handed over.

        Args:
            compress: takes a batch's records as bytes and returns them compressed.
            report: called with an exception of `compress`; the batch then goes out uncompressed.

        Returns:
            How many batches there were.
        """
        cdef job_list* jobs = &self.state.jobs
        cdef job* taken
        cdef job* following
        cdef int count = 0
        kf_lock(&jobs.lock)
        taken = jobs.first
        jobs.first = NULL
        jobs.last = &jobs.first
        kf_unlock(&jobs.lock)
        while taken != NULL:
            following = taken.next
            give_back(taken.batch, compress, report)
            free(taken)
            taken = following
            count += 1
        return count

    def __dealloc__(self):
        if self.state == NULL:
            return
        jobs_free(&self.state.jobs)
        free(self.state)


cdef int give_back(kf_batch* batch, compress, report) except -1:
    """Compress one batch; if that fails or saves nothing, the batch goes out uncompressed."""
    cdef size_t size = kf_batch_records_size(batch)
    cdef kf_slab* coded = NULL
    cdef size_t written
    records = PyBytes_FromStringAndSize(NULL, size)
    kf_batch_gather(batch, <uint8_t*>PyBytes_AS_STRING(records))
    try:
        data = <bytes>compress(records)
        written = len(data)
    except Exception as error:
        report(error)
        written = size
    if written < size:
        coded = in_slab(batch, PyBytes_AS_STRING(data), written)
    kf_queue_coded(batch.queue, batch, coded)
    return 0


cdef class Compressor:
    """The pool of one producer.

    Args:
        codec: compression code of the record batch attributes.
        level: for the codec's library.
    """

    def __cinit__(self, int codec, int level):
        cdef int failed = 0
        cdef int wanted = max(1, min(THREADS_MAX, (os.cpu_count() or 1) - 1))
        if not codec_is_native(<kf_codec>codec):
            raise UsageError("this build has no library for the codec")
        self.owner_pid = getpid()
        self.state = <compressor_state*>calloc(1, sizeof(compressor_state))
        if self.state == NULL:
            raise MemoryError
        jobs_init(&self.state.jobs)
        kf_cond_init(&self.state.work)
        self.state.codec = codec
        self.state.level = level
        while self.state.thread_count < wanted and not failed:
            failed = start_thread(&self.state.threads[self.state.thread_count], b"kf-codec",
                                  compressor_main, self.state)
            if not failed:
                self.state.thread_count += 1
        self.thread_count = self.state.thread_count
        if self.thread_count == 0:
            raise OSError(failed, os.strerror(failed))

    def stop(self):
        """Finish the batches that were handed over, and end the threads."""
        self.join()

    cdef void join(self):
        cdef int i
        if self.state.thread_count == 0 or getpid() != self.owner_pid:
            return
        with nogil:
            kf_lock(&self.state.jobs.lock)
            self.state.stopping = True
            kf_cond_wake_all(&self.state.work)
            kf_unlock(&self.state.jobs.lock)
            for i in range(self.state.thread_count):
                pthread_join(self.state.threads[i], NULL)
        self.state.thread_count = 0

    def __dealloc__(self):
        if self.state == NULL or getpid() != self.owner_pid:
            return
        self.join()
        kf_cond_destroy(&self.state.work)
        jobs_free(&self.state.jobs)
        free(self.state)
