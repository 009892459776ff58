/* What all connections of a client share: versions, suites, trust, the own certificate. */
#include "kf_tls.h"

#ifdef KF_HAVE_OPENSSL

#include "kf_tls_openssl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/x509v3.h>

enum {
    READ_AHEAD = 4 * KF_TLS_RECORD, /* bytes taken from the connection at once */
    SECURITY_LEVEL = 2,
    DER_SEQUENCE = 0x30,            /* certificates and PKCS12 files begin with it */
};

static void write_key(const SSL *ssl, const char *line) {
    const kf_tls_context *context = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    fprintf(context->key_log, "%s\n", line);
    fflush(context->key_log);
}

/* Give a password to OpenSSL. Without one it must not ask at the terminal. */
static int give_password(char *into, int size, int writes, void *password) {
    (void)writes;
    size_t len = password == NULL ? 0 : strlen(password);
    if (password == NULL || len > (size_t)size) {
        return -1;
    }
    memcpy(into, password, len);
    return (int)len;
}

kf_tls_context *kf_tls_context_new(int minimum, int maximum, bool verifies) {
    kf_tls_context *context = calloc(1, sizeof *context);
    ERR_clear_error();
    if (context == NULL || (context->ssl = SSL_CTX_new(TLS_client_method())) == NULL) {
        free(context);
        return NULL;
    }
    SSL_CTX *ssl = context->ssl;
    context->references = 1;
    SSL_CTX_set_app_data(ssl, context);
    SSL_CTX_set_min_proto_version(ssl, minimum);
    SSL_CTX_set_max_proto_version(ssl, maximum);
    /* Kafka's frames say where they end, so an end without close_notify hides nothing. */
    SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    /* As Python's ssl, whatever this OpenSSL was built with: no MD5, SHA-1, RSA below 2048 bits.
     * `@SECLEVEL` among the suites comes after this, and may lower it. */
    if (SSL_CTX_get_security_level(ssl) < SECURITY_LEVEL) {
        SSL_CTX_set_security_level(ssl, SECURITY_LEVEL);
    }
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_read_ahead(ssl, 1);
    SSL_CTX_set_default_read_buffer_len(ssl, READ_AHEAD);
    SSL_CTX_set_cert_cb(ssl, kf_tls_asked, NULL);
    SSL_CTX_set_verify(ssl, verifies ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, kf_tls_verified);
    return context;
}

kf_tls_context *kf_tls_context_share(kf_tls_context *context) {
    kf_add(&context->references, 1);
    return context;
}

void kf_tls_context_release(kf_tls_context *context) {
    if (kf_add(&context->references, -1) > 0) {
        return;
    }
    SSL_CTX_free(context->ssl);
    if (context->key_log != NULL) {
        fclose(context->key_log);
    }
    free(context);
}

bool kf_tls_suites(kf_tls_context *context, const char *tls12, const char *tls13) {
    ERR_clear_error();
    return (tls12 == NULL || SSL_CTX_set_cipher_list(context->ssl, tls12) == 1) &&
           (tls13 == NULL || SSL_CTX_set_ciphersuites(context->ssl, tls13) == 1);
}

/* What went wrong in reading something, by OpenSSL's last error. */
static int load_failure(bool has_password) {
    unsigned long last = ERR_peek_last_error();
    int reason = ERR_GET_REASON(last);
    switch (ERR_GET_LIB(last)) {
    case ERR_LIB_PEM:
        if (reason == PEM_R_NO_START_LINE) {
            return KF_TLS_EMPTY;
        }
        if (reason == PEM_R_BAD_PASSWORD_READ || reason == PEM_R_BAD_DECRYPT) {
            return KF_TLS_PASSWORD;
        }
        return KF_TLS_MALFORMED;
    case ERR_LIB_PKCS12:
        return reason == PKCS12_R_MAC_VERIFY_FAILURE ? KF_TLS_PASSWORD : KF_TLS_MALFORMED;
    case ERR_LIB_EVP:
    case ERR_LIB_PROV:
        return has_password ? KF_TLS_PASSWORD : KF_TLS_MALFORMED;
    case ERR_LIB_X509:
        return reason == X509_R_KEY_VALUES_MISMATCH || reason == X509_R_KEY_TYPE_MISMATCH
                   ? KF_TLS_MISMATCH
                   : KF_TLS_REFUSED;
    case ERR_LIB_SSL:
        return KF_TLS_REFUSED;
    default:
        return KF_TLS_MALFORMED;
    }
}

static void note_expiry(kf_tls_expiry *first, X509 *certificate) {
    int64_t not_after = kf_tls_unix_time(X509_get0_notAfter(certificate));
    if (first->subject[0] == '\0' || not_after < first->not_after) {
        kf_tls_subject(certificate, first->subject, sizeof first->subject);
        first->not_after = not_after;
    }
}

/* Take a certificate, which is given up. */
static bool add_trusted(kf_tls_context *context, X509 *certificate) {
    X509_STORE *store = SSL_CTX_get_cert_store(context->ssl);
    bool fine = X509_STORE_add_cert(store, certificate) == 1;
    note_expiry(&context->trusted, certificate);
    X509_free(certificate);
    return fine;
}

/* Take a certificate, which is given up: the first is the own one, others are its chain. */
static bool add_own(kf_tls_context *context, X509 *certificate) {
    bool fine;
    if (context->has_certificate) {
        fine = SSL_CTX_add1_chain_cert(context->ssl, certificate) == 1;
    } else {
        fine = SSL_CTX_use_certificate(context->ssl, certificate) == 1;
        context->has_certificate = fine;
    }
    note_expiry(&context->own, certificate);
    X509_free(certificate);
    return fine;
}

typedef bool (*add_function)(kf_tls_context *context, X509 *certificate);

static bool is_pem(const uint8_t *data, size_t size) {
    static const char begin[] = "-----BEGIN ";
    for (size_t i = 0; i + sizeof begin - 1 <= size; i++) {
        if (data[i] == '-' && memcmp(data + i, begin, sizeof begin - 1) == 0) {
            return true;
        }
    }
    return false;
}

static int add_pem(kf_tls_context *context, const uint8_t *data, size_t size, add_function add) {
    BIO *bio = BIO_new_mem_buf(data, (int)size);
    int count = 0;
    X509 *certificate;
    while ((certificate = PEM_read_bio_X509_AUX(bio, NULL, give_password, NULL)) != NULL) {
        if (!add(context, certificate)) {
            BIO_free(bio);
            return load_failure(false);
        }
        count++;
    }
    BIO_free(bio);
    int status = load_failure(false);
    if (status != KF_TLS_EMPTY) {
        return status;
    }
    ERR_clear_error(); /* the end of the text is no error */
    return count > 0 ? KF_TLS_LOADED : KF_TLS_EMPTY;
}

static int add_der(kf_tls_context *context, const uint8_t *data, size_t size, add_function add) {
    X509 *certificate = d2i_X509(NULL, &data, (long)size);
    if (certificate == NULL) {
        return KF_TLS_MALFORMED;
    }
    return add(context, certificate) ? KF_TLS_LOADED : load_failure(false);
}

/* Open a PKCS12 file. The file's own order of certificates is kept in `others`. */
static int open_pkcs12(const uint8_t *data, size_t size, const char *password, EVP_PKEY **key,
                       X509 **own, STACK_OF(X509) * *others) {
    PKCS12 *file = d2i_PKCS12(NULL, &data, (long)size);
    if (file == NULL) {
        return KF_TLS_MALFORMED;
    }
    int status = KF_TLS_LOADED;
    if (PKCS12_parse(file, password, key, own, others) != 1) {
        status = load_failure(true);
    }
    PKCS12_free(file);
    return status;
}

/* Take the chain behind a private key out of what a PKCS12 file holds besides. Java does not trust
 * it either, but the key's own certificate, and those that stand in the file by themselves. A
 * certificate that does both is in the file twice. */
static void take_chain_out(X509 *own, STACK_OF(X509) * others) {
    X509 *last = own;
    X509_up_ref(last);
    for (int i = 0; i < sk_X509_num(others) && X509_check_issued(last, last) != X509_V_OK; i++) {
        if (X509_check_issued(sk_X509_value(others, i), last) == X509_V_OK) {
            X509_free(last);
            last = sk_X509_delete(others, i);
            i = -1;
        }
    }
    X509_free(last);
}

int kf_tls_trust(kf_tls_context *context, const uint8_t *data, size_t size, const char *password) {
    ERR_clear_error();
    /* As in Java, whatever certificate is trusted ends the chain, be it an authority or not. */
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context->ssl), X509_V_FLAG_PARTIAL_CHAIN);
    if (is_pem(data, size)) {
        return add_pem(context, data, size, add_trusted);
    }
    if (size == 0 || data[0] != DER_SEQUENCE) {
        return KF_TLS_EMPTY;
    }
    if (add_der(context, data, size, add_trusted) == KF_TLS_LOADED) {
        return KF_TLS_LOADED;
    }
    ERR_clear_error();
    EVP_PKEY *key = NULL;
    X509 *own = NULL;
    STACK_OF(X509) *others = NULL;
    int status = open_pkcs12(data, size, password, &key, &own, &others);
    bool found = own != NULL || sk_X509_num(others) > 0;
    if (status == KF_TLS_LOADED && !found) {
        status = KF_TLS_EMPTY;
    }
    if (own != NULL) {
        take_chain_out(own, others);
    }
    if (own != NULL && !add_trusted(context, own)) {
        status = load_failure(false);
    }
    while (sk_X509_num(others) > 0) {
        if (!add_trusted(context, sk_X509_shift(others))) {
            status = load_failure(false);
        }
    }
    sk_X509_free(others);
    EVP_PKEY_free(key);
    return status;
}

int kf_tls_trust_system(kf_tls_context *context) {
    ERR_clear_error();
    return SSL_CTX_set_default_verify_paths(context->ssl) == 1 ? KF_TLS_LOADED : KF_TLS_REFUSED;
}

int kf_tls_trust_at(kf_tls_context *context, const char *file, const char *folder) {
    ERR_clear_error();
    return SSL_CTX_load_verify_locations(context->ssl, file, folder) == 1 ? KF_TLS_LOADED
                                                                          : KF_TLS_REFUSED;
}

int kf_tls_revoke(kf_tls_context *context, const uint8_t *pem, size_t size) {
    X509_STORE *store = SSL_CTX_get_cert_store(context->ssl);
    BIO *bio = BIO_new_mem_buf(pem, (int)size);
    X509_CRL *list;
    int count = 0;
    ERR_clear_error();
    while ((list = PEM_read_bio_X509_CRL(bio, NULL, give_password, NULL)) != NULL) {
        count += X509_STORE_add_crl(store, list) == 1;
        X509_CRL_free(list);
    }
    BIO_free(bio);
    int status = load_failure(false);
    ERR_clear_error();
    X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK);
    return status == KF_TLS_EMPTY && count > 0 ? KF_TLS_LOADED : status;
}

int kf_tls_certify(kf_tls_context *context, const uint8_t *data, size_t size) {
    ERR_clear_error();
    return is_pem(data, size) ? add_pem(context, data, size, add_own)
                              : add_der(context, data, size, add_own);
}

static int use_key(kf_tls_context *context, EVP_PKEY *key) {
    int status = KF_TLS_LOADED;
    if (SSL_CTX_use_PrivateKey(context->ssl, key) != 1 ||
        SSL_CTX_check_private_key(context->ssl) != 1) {
        status = load_failure(false);
    }
    EVP_PKEY_free(key);
    return status;
}

int kf_tls_key(kf_tls_context *context, const uint8_t *data, size_t size, const char *password) {
    BIO *bio = BIO_new_mem_buf(data, (int)size);
    EVP_PKEY *key;
    ERR_clear_error();
    if (is_pem(data, size)) {
        key = PEM_read_bio_PrivateKey(bio, NULL, give_password, (void *)(uintptr_t)password);
    } else {
        key = d2i_PrivateKey_bio(bio, NULL);
    }
    BIO_free(bio);
    if (key != NULL) {
        return use_key(context, key);
    }
    int status = load_failure(true);
    /* OpenSSL's decoders tell less than its PEM reader: what is encrypted wants a password. */
    static const char encrypted[] = "ENCRYPTED";
    for (size_t i = 0; status != KF_TLS_EMPTY && i + sizeof encrypted - 1 <= size; i++) {
        if (memcmp(data + i, encrypted, sizeof encrypted - 1) == 0) {
            return KF_TLS_PASSWORD;
        }
    }
    return status == KF_TLS_PASSWORD ? KF_TLS_MALFORMED : status;
}

int kf_tls_identity(kf_tls_context *context, const uint8_t *pkcs12, size_t size,
                    const char *password) {
    EVP_PKEY *key = NULL;
    X509 *own = NULL;
    STACK_OF(X509) *others = NULL;
    ERR_clear_error();
    int status = open_pkcs12(pkcs12, size, password, &key, &own, &others);
    if (status == KF_TLS_LOADED && (own == NULL || key == NULL)) {
        status = KF_TLS_EMPTY;
    }
    if (status == KF_TLS_LOADED) {
        status = add_own(context, own) ? KF_TLS_LOADED : load_failure(false);
        own = NULL;
    }
    while (status == KF_TLS_LOADED && sk_X509_num(others) > 0) {
        status = add_own(context, sk_X509_shift(others)) ? KF_TLS_LOADED : load_failure(false);
    }
    if (status == KF_TLS_LOADED) {
        status = use_key(context, key);
        key = NULL;
    }
    X509_free(own);
    EVP_PKEY_free(key);
    sk_X509_pop_free(others, X509_free);
    return status;
}

int kf_tls_log_keys(kf_tls_context *context, int fd) {
    context->key_log = fdopen(fd, "a");
    if (context->key_log == NULL) {
        return errno;
    }
    SSL_CTX_set_keylog_callback(context->ssl, write_key);
    return 0;
}

#endif
