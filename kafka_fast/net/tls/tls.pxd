"""TLS by OpenSSL, as declared in src_c/kf_tls.h."""

from libc.stdint cimport int64_t, uint8_t

from kafka_fast.dataplane.core.structs cimport kf_link_io


cdef extern from "kf_tls.h" nogil:
    enum:
        KF_TLS_LOADED
        KF_TLS_EMPTY
        KF_TLS_MALFORMED
        KF_TLS_PASSWORD
        KF_TLS_MISMATCH
        KF_TLS_REFUSED
        KF_TLS_REASON_SIZE

    ctypedef struct kf_tls_failure:
        int error
        int verify
        bint closed
        bint asked
        bint late
        char* reason
        char* subject
        char* names
        int64_t not_before
        int64_t not_after
        uint8_t* head
        size_t head_size

    ctypedef struct kf_tls_expiry:
        char* subject
        int64_t not_after

    ctypedef struct kf_tls_context:
        pass

    ctypedef struct kf_tls:
        pass

    ctypedef struct kf_tls_library:
        const char* (*version)() noexcept nogil
        void (*reason)(char* into, size_t size) noexcept nogil
        kf_tls_context* (*context_new)(int minimum, int maximum, bint verifies) noexcept nogil
        kf_tls_context* (*context_share)(kf_tls_context* context) noexcept nogil
        void (*context_release)(kf_tls_context* context) noexcept nogil
        bint (*suites)(kf_tls_context* context, const char* tls12,
                       const char* tls13) noexcept nogil
        int (*trust)(kf_tls_context* context, const uint8_t* data, size_t size,
                     const char* password) noexcept nogil
        int (*trust_system)(kf_tls_context* context) noexcept nogil
        int (*trust_at)(kf_tls_context* context, const char* file,
                        const char* folder) noexcept nogil
        int (*revoke)(kf_tls_context* context, const uint8_t* pem, size_t size) noexcept nogil
        int (*certify)(kf_tls_context* context, const uint8_t* data, size_t size) noexcept nogil
        int (*key)(kf_tls_context* context, const uint8_t* data, size_t size,
                   const char* password) noexcept nogil
        int (*identity)(kf_tls_context* context, const uint8_t* pkcs12, size_t size,
                        const char* password) noexcept nogil
        int (*log_keys)(kf_tls_context* context, int fd) noexcept nogil
        const kf_tls_expiry* (*trusted_until)(const kf_tls_context* context) noexcept nogil
        const kf_tls_expiry* (*certified_until)(const kf_tls_context* context) noexcept nogil
        kf_tls* (*connect)(kf_tls_context* context, const kf_link_io* below, const char* name,
                           bint is_ip, bint checks_host) noexcept nogil
        int (*handshake)(kf_tls* tls, kf_tls_failure* failure) noexcept nogil
        kf_link_io (*io)(kf_tls* tls) noexcept nogil
        void (*drop)(kf_tls* tls) noexcept nogil

    const kf_tls_library* kf_tls_library_here()
