/* What the files over OpenSSL share; kf_tls.h is for everybody else. */
#ifndef KF_TLS_OPENSSL_H
#define KF_TLS_OPENSSL_H

#include "kf_tls.h"

#include <openssl/ssl.h>

struct kf_tls_context {
    kf_atomic_int references;
    SSL_CTX *ssl;
    bool has_certificate;
    kf_tls_expiry trusted, own;
    FILE *key_log;
};

enum {
    KF_TLS_TOGETHER = 7 * SSL3_RT_MAX_PACKET_SIZE, /* encrypted, and sent with what follows */
    KF_TLS_SEALED = KF_TLS_TOGETHER + 2 * SSL3_RT_MAX_PACKET_SIZE,
};

struct kf_tls {
    SSL *ssl;
    kf_tls_context *context;
    kf_link_io below;
    bool may_read; /* this call of OpenSSL has not read the connection yet */
    bool drained; /* the last read found nothing whole: only the poller knows when to read again */
    bool failed; /* OpenSSL allows no further call */
    kf_tls_failure failure;
    uint8_t gathered[KF_TLS_RECORD]; /* small pieces, on their way into one record */
    /* Encrypted records. Between two writes there are some only if the connection takes no more:
     * then they are sent before OpenSSL may encrypt more, and the last `owed` bytes of plaintext
     * in them do not count as written yet. */
    bool more_follows, is_writing, is_held_up;
    size_t owed;
    size_t sealed_pos, sealed_size;
    uint8_t sealed[KF_TLS_SEALED];
};

/* Describe a certificate in the words of a failure. */
void kf_tls_describe(X509 *certificate, kf_tls_failure *failure);
void kf_tls_subject(X509 *certificate, char *into, size_t size);
int64_t kf_tls_unix_time(const ASN1_TIME *at);
void kf_tls_reason(char *into, size_t size);
/* Called by OpenSSL. */
int kf_tls_verified(int fine, X509_STORE_CTX *store);
int kf_tls_asked(SSL *ssl, void *argument);

kf_tls_context *kf_tls_context_new(int minimum, int maximum, bool verifies);
kf_tls_context *kf_tls_context_share(kf_tls_context *context);
void kf_tls_context_release(kf_tls_context *context);
bool kf_tls_suites(kf_tls_context *context, const char *tls12, const char *tls13);
int kf_tls_trust(kf_tls_context *context, const uint8_t *data, size_t size, const char *password);
int kf_tls_trust_system(kf_tls_context *context);
int kf_tls_trust_at(kf_tls_context *context, const char *file, const char *folder);
int kf_tls_revoke(kf_tls_context *context, const uint8_t *pem, size_t size);
int kf_tls_certify(kf_tls_context *context, const uint8_t *data, size_t size);
int kf_tls_key(kf_tls_context *context, const uint8_t *data, size_t size, const char *password);
int kf_tls_identity(kf_tls_context *context, const uint8_t *pkcs12, size_t size,
                    const char *password);
int kf_tls_log_keys(kf_tls_context *context, int fd);

#endif /* KF_TLS_OPENSSL_H */
