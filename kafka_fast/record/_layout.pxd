"""The C declarations of record batches, and of the scan over their records."""

from libc.stdint cimport int32_t, int64_t

from kafka_fast._wire.layout cimport *


cdef extern from "kf_scan.h" nogil:
    # Positions and lengths of one record's parts in the records section; null has length -1.
    ctypedef struct kf_span:
        int64_t offset
        int64_t timestamp
        int32_t key_pos
        int32_t key_len
        int32_t value_pos
        int32_t value_len
        int32_t headers_pos
        int32_t header_count

    ctypedef enum kf_scan_error:
        KF_SCAN_OK

    const char* kf_scan_text(kf_scan_error error)
    kf_scan_error kf_scan_promise(const kf_batch_header* header, size_t size)
    kf_scan_error kf_scan_records(
        kf_reader* reader, const kf_batch_header* header, kf_span* out, int32_t* scanned
    )
