/* TLS by OpenSSL: contexts, handshakes, and links over an encrypted connection.
 *
 *     kf_link ── kf_link_io ──► kf_tls (an SSL and its BIO) ── kf_link_io ──► the socket
 *
 * The bytes below come and go through another kf_link_io, so this code calls no socket. All of it
 * stands behind one table, which a build without OpenSSL does not have.
 *
 * Threads: a context is made by one thread and then shared, unchanged. A kf_tls belongs to one
 * thread at a time: first the one of the handshakes, then the data plane's.
 */
#ifndef KF_TLS_H
#define KF_TLS_H

#include "kf_link.h"
#include "kf_sync.h"

enum {
    KF_TLS_REASON_SIZE = 128,
    KF_TLS_NAME_SIZE = 256,
    KF_TLS_HEAD_SIZE = 8,
    KF_TLS_RECORD = 16384, /* bytes of plaintext that one record carries at most */
};

/* How reading certificates or a key ended. */
enum kf_tls_load {
    KF_TLS_LOADED = 0,
    KF_TLS_EMPTY = 1,     /* it holds nothing of what was looked for */
    KF_TLS_MALFORMED = 2, /* it cannot be read */
    KF_TLS_PASSWORD = 3,  /* encrypted, and the password is wrong or missing */
    KF_TLS_MISMATCH = 4,  /* the key is not the certificate's */
    KF_TLS_REFUSED = 5,   /* OpenSSL will not use it: kf_tls_library.reason says why */
};

/* Why a handshake or a connection failed, as OpenSSL and the connection tell it. */
typedef struct kf_tls_failure {
    int error;   /* errno of the connection, or 0 */
    int verify;  /* X509_V_ERR_*: why the peer's certificate is refused, or 0 */
    bool closed; /* the peer has closed the connection */
    bool asked;  /* the peer asked for a certificate, and there was none to show */
    bool late;   /* the deadline has passed */
    char reason[KF_TLS_REASON_SIZE]; /* OpenSSL's words, or "" */
    /* of the certificate that was refused */
    char subject[KF_TLS_NAME_SIZE];
    char names[KF_TLS_NAME_SIZE]; /* hosts that it is for */
    int64_t not_before, not_after; /* Unix seconds */
    /* the peer's first bytes: they tell a listener without TLS */
    uint8_t head[KF_TLS_HEAD_SIZE];
    size_t head_size;
} kf_tls_failure;

/* The certificate, of several, that ends first. */
typedef struct kf_tls_expiry {
    char subject[KF_TLS_NAME_SIZE]; /* "": there is none */
    int64_t not_after;              /* Unix seconds */
} kf_tls_expiry;

typedef struct kf_tls_context kf_tls_context;
typedef struct kf_tls kf_tls;

typedef struct kf_tls_library {
    const char *(*version)(void);
    /* OpenSSL's words for what it refused last in this thread. */
    void (*reason)(char *into, size_t size);

    /* NULL: no memory. Versions as on the wire (0x0303: TLS 1.2). */
    kf_tls_context *(*context_new)(int minimum, int maximum, bool verifies);
    kf_tls_context *(*context_share)(kf_tls_context *context);
    void (*context_release)(kf_tls_context *context);
    /* TLS 1.2's and TLS 1.3's suites, with colons between; NULL leaves them as they are. */
    bool (*suites)(kf_tls_context *context, const char *tls12, const char *tls13);
    /* What follows returns enum kf_tls_load. Trust: PEM, DER or PKCS12, told by its content. */
    int (*trust)(kf_tls_context *context, const uint8_t *data, size_t size, const char *password);
    int (*trust_system)(kf_tls_context *context);
    /* Trust the certificates of a file and of a folder, either of which may be NULL. */
    int (*trust_at)(kf_tls_context *context, const char *file, const char *folder);
    int (*revoke)(kf_tls_context *context, const uint8_t *pem, size_t size);
    /* The own certificate, and the chain behind it: PEM, or one DER for each call. */
    int (*certify)(kf_tls_context *context, const uint8_t *data, size_t size);
    /* The key to it: PEM or DER, encrypted or not. */
    int (*key)(kf_tls_context *context, const uint8_t *data, size_t size, const char *password);
    int (*identity)(kf_tls_context *context, const uint8_t *pkcs12, size_t size,
                    const char *password);
    /* Write the sessions' keys to this file, which is then the context's: 0; or errno. */
    int (*log_keys)(kf_tls_context *context, int fd);
    const kf_tls_expiry *(*trusted_until)(const kf_tls_context *context);
    const kf_tls_expiry *(*certified_until)(const kf_tls_context *context);

    /* A connection before its handshake. `below` is its own from here on, even if this fails (NULL:
     * no memory). `host` is what the certificate must name; NULL: any will do. */
    kf_tls *(*connect)(kf_tls_context *context, const kf_link_io *below, const char *name,
                       bool is_ip, bool checks_host);
    /* Go on with the handshake. 0: it is done; KF_IO_*: it waits, or has failed. */
    int (*handshake)(kf_tls *tls, kf_tls_failure *failure);
    /* The link's functions, after the handshake. They own `tls`. */
    kf_link_io (*io)(kf_tls *tls);
    /* Close and free, before `io`. */
    void (*drop)(kf_tls *tls);
} kf_tls_library;

/* NULL: this build has no OpenSSL. */
const kf_tls_library *kf_tls_library_here(void);

#endif /* KF_TLS_H */
