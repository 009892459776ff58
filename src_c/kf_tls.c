/* One connection under TLS: the handshake, and the link's read, write and close. */
#include "kf_tls.h"

#ifndef KF_HAVE_OPENSSL

const kf_tls_library *kf_tls_library_here(void) {
    return NULL;
}

#else

#include "kf_tls_openssl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

/* ---- certificates and errors in words ---- */

/* From OpenSSL 3.2 on this error follows the one that says what was wrong with a record. The number
 * is ours: a build with older headers may run with a newer library. */
#define RECORD_LAYER_FAILURE 313

void kf_tls_reason(char *into, size_t size) {
    unsigned long last = ERR_peek_last_error();
    if (ERR_GET_LIB(last) == ERR_LIB_SSL && ERR_GET_REASON(last) == RECORD_LAYER_FAILURE) {
        last = ERR_peek_error();
    }
    const char *text = ERR_reason_error_string(last);
    snprintf(into, size, "%s", text != NULL ? text : last != 0 ? "an error without a name" : "");
}

int64_t kf_tls_unix_time(const ASN1_TIME *at) {
    struct tm parts;
    return ASN1_TIME_to_tm(at, &parts) == 1 ? (int64_t)timegm(&parts) : 0;
}

void kf_tls_subject(X509 *certificate, char *into, size_t size) {
    BIO *bio = BIO_new(BIO_s_mem());
    X509_NAME_print_ex(bio, X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253);
    int len = BIO_read(bio, into, (int)size - 1);
    into[len > 0 ? len : 0] = '\0';
    if (len <= 0) {
        snprintf(into, size, "a certificate without a subject");
    }
    BIO_free(bio);
}

/* Append one name. Certificates are written by strangers: only what is printable is shown. */
static void append_name(char *names, const char *name, size_t len) {
    size_t filled = strlen(names);
    if (filled + len + 3 > KF_TLS_NAME_SIZE) {
        return;
    }
    if (filled > 0) {
        names[filled++] = ',';
        names[filled++] = ' ';
    }
    for (size_t i = 0; i < len; i++) {
        names[filled++] = name[i] > ' ' && name[i] < 127 ? name[i] : '?';
    }
    names[filled] = '\0';
}

static void append_ip(char *names, const ASN1_OCTET_STRING *ip) {
    const uint8_t *data = ASN1_STRING_get0_data(ip);
    int len = ASN1_STRING_length(ip);
    char text[48];
    int at = 0;
    if (len == 4) {
        at = snprintf(text, sizeof text, "%d.%d.%d.%d", data[0], data[1], data[2], data[3]);
    } else if (len == 16) {
        for (int i = 0; i < 16; i += 2) {
            at += snprintf(text + at, sizeof text - (size_t)at, "%s%x", i > 0 ? ":" : "",
                           data[i] << 8 | data[i + 1]);
        }
    }
    append_name(names, text, (size_t)at);
}

static void list_names(X509 *certificate, char *names) {
    GENERAL_NAMES *all = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    names[0] = '\0';
    for (int i = 0; i < sk_GENERAL_NAME_num(all); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(all, i);
        if (name->type == GEN_DNS) {
            append_name(names, (const char *)ASN1_STRING_get0_data(name->d.dNSName),
                        (size_t)ASN1_STRING_length(name->d.dNSName));
        } else if (name->type == GEN_IPADD) {
            append_ip(names, name->d.iPAddress);
        }
    }
    GENERAL_NAMES_free(all);
}

void kf_tls_describe(X509 *certificate, kf_tls_failure *failure) {
    kf_tls_subject(certificate, failure->subject, sizeof failure->subject);
    list_names(certificate, failure->names);
    failure->not_before = kf_tls_unix_time(X509_get0_notBefore(certificate));
    failure->not_after = kf_tls_unix_time(X509_get0_notAfter(certificate));
}

int kf_tls_verified(int fine, X509_STORE_CTX *store) {
    const SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    kf_tls *it = SSL_get_app_data(ssl);
    bool matters = SSL_get_verify_mode(ssl) != SSL_VERIFY_NONE; /* OpenSSL asks all the same */
    if (!fine && matters && it->failure.verify == 0) {
        it->failure.verify = X509_STORE_CTX_get_error(store);
        X509 *refused = X509_STORE_CTX_get_current_cert(store);
        if (refused != NULL) {
            kf_tls_describe(refused, &it->failure);
        }
    }
    return fine;
}

int kf_tls_asked(SSL *ssl, void *argument) {
    kf_tls *it = SSL_get_app_data(ssl);
    (void)argument;
    it->failure.asked = !it->context->has_certificate;
    return 1;
}

/* ---- the connection below, as OpenSSL sees it ---- */

/* OpenSSL reads until it has data, whatever else comes: session tickets, new keys, requests to
 * renegotiate. A peer that sends nothing but these would keep the thread in one call. So each call
 * reads the connection once; a poller that says what can be read says so again. */
static int bio_read(BIO *bio, char *into, int size) {
    kf_tls *it = BIO_get_data(bio);
    kf_tls_failure *failure = &it->failure;
    BIO_clear_retry_flags(bio);
    if (!it->may_read) {
        BIO_set_retry_read(bio);
        return -1;
    }
    it->may_read = false;
    int64_t got = it->below.read(it->below.context, into, (size_t)size, &failure->error);
    if (got > 0) {
        for (int64_t i = 0; i < got && failure->head_size < KF_TLS_HEAD_SIZE; i++) {
            failure->head[failure->head_size++] = (uint8_t)into[i];
        }
        return (int)got;
    }
    if (got == 0) {
        failure->closed = true;
        return 0;
    }
    if (got == KF_IO_WANT_READ) {
        BIO_set_retry_read(bio);
    }
    return -1;
}

/* Keep what OpenSSL has encrypted. False: there is no room. */
static bool keep_sealed(kf_tls *it, const char *data, size_t size, size_t room) {
    if (it->sealed_size + size > room) {
        return false;
    }
    memcpy(it->sealed + it->sealed_size, data, size);
    it->sealed_size += size;
    return true;
}

/* Send what lies sealed, and `data` behind it, in one call. How much of `data` was sent, or
 * KF_IO_*; nothing of it goes before all that was sealed. */
static int64_t send_sealed(kf_tls *it, const char *data, size_t size) {
    struct iovec pieces[] = {
        {it->sealed + it->sealed_pos, it->sealed_size - it->sealed_pos},
        {(void *)(uintptr_t)data, size},
    };
    size_t before = pieces[0].iov_len;
    int64_t sent = it->below.write(it->below.context, before > 0 ? pieces : pieces + 1,
                                   before > 0 && size > 0 ? 2 : 1, &it->failure.error);
    if (sent < 0) {
        return sent;
    }
    if (sent < (int64_t)before) {
        it->sealed_pos += (size_t)sent;
        return KF_IO_WANT_WRITE;
    }
    it->sealed_pos = it->sealed_size = 0;
    return sent - (int64_t)before;
}

/* OpenSSL writes one record at a time. Those that more will follow are kept, so that several go out
 * with one system call; the last of them is sent from where it lies.
 *
 * A record that the connection does not take is kept, too. If OpenSSL held it back, and new keys
 * came meanwhile, it would write its answer to them instead, and break the session. */
static int bio_write(BIO *bio, const char *data, int size) {
    kf_tls *it = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (it->is_held_up) {
        if (keep_sealed(it, data, (size_t)size, sizeof it->sealed)) {
            return size;
        }
        BIO_set_retry_write(bio);
        return -1;
    }
    if (it->more_follows && keep_sealed(it, data, (size_t)size, KF_TLS_TOGETHER)) {
        return size;
    }
    int64_t sent = send_sealed(it, data, (size_t)size);
    if (sent == KF_IO_WANT_WRITE || (sent >= 0 && sent < size)) {
        size_t done = sent > 0 ? (size_t)sent : 0;
        if (it->is_writing) {
            it->is_held_up = keep_sealed(it, data + done, (size_t)size - done, sizeof it->sealed);
            return size;
        }
        if (done == 0) {
            BIO_set_retry_write(bio);
        }
    }
    return sent > 0 ? (int)sent : -1;
}

static long bio_control(BIO *bio, int command, long number, void *pointer) {
    const kf_tls *it = BIO_get_data(bio);
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH || (command == BIO_CTRL_EOF && it->failure.closed);
}

static BIO_METHOD *method;
static CRYPTO_ONCE method_once = CRYPTO_ONCE_STATIC_INIT;

static void make_method(void) {
    method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "kafka_fast link");
    if (method != NULL) {
        BIO_meth_set_read(method, bio_read);
        BIO_meth_set_write(method, bio_write);
        BIO_meth_set_ctrl(method, bio_control);
    }
}

/* ---- reading and writing ---- */

/* What a call of OpenSSL that did not succeed means: KF_IO_*, or 0 if the peer has closed. */
static int64_t outcome(kf_tls *it, int result) {
    switch (SSL_get_error(it->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        return KF_IO_WANT_READ;
    case SSL_ERROR_WANT_WRITE:
        return KF_IO_WANT_WRITE;
    case SSL_ERROR_ZERO_RETURN:
        it->failure.closed = true;
        return 0;
    case SSL_ERROR_SYSCALL:
        it->failed = true;
        return it->failure.error == 0 ? 0 : KF_IO_ERROR;
    default:
        it->failed = true;
        kf_tls_reason(it->failure.reason, sizeof it->failure.reason);
        ERR_clear_error();
        return KF_IO_ERROR;
    }
}

static int64_t tls_read(void *context, void *into, size_t size, int *error) {
    kf_tls *it = context;
    size_t got;
    ERR_clear_error();
    it->may_read = true;
    int result = SSL_read_ex(it->ssl, into, size, &got);
    it->drained = result != 1;
    if (result == 1) {
        return (int64_t)got;
    }
    int64_t meaning = outcome(it, result);
    *error = it->failure.reason[0] != '\0' ? it->failure.asked : it->failure.error;
    return meaning;
}

/* After a write that failed: the peer may have said why before it closed the connection. */
static void hear_last_words(kf_tls *it) {
    uint8_t byte;
    size_t got;
    ERR_clear_error();
    int error = it->failure.error;
    it->may_read = true;
    int result = SSL_peek_ex(it->ssl, &byte, 1, &got);
    if (result != 1) {
        outcome(it, result);
    }
    it->failure.error = error;
}

/* Fill one record with pieces from `pos` of the first on. */
static size_t gather(uint8_t *into, const struct iovec *pieces, int count, size_t pos) {
    size_t filled = 0;
    for (int i = 0; i < count && filled < KF_TLS_RECORD; i++) {
        size_t len = pieces[i].iov_len - pos;
        if (len > KF_TLS_RECORD - filled) {
            len = KF_TLS_RECORD - filled;
        }
        memcpy(into + filled, (const uint8_t *)pieces[i].iov_base + pos, len);
        filled += len;
        pos = 0;
    }
    return filled;
}

/* Say why a write has failed. */
static int64_t write_failed(kf_tls *it, int *error) {
    if (it->failure.reason[0] == '\0') {
        hear_last_words(it);
    }
    *error = it->failure.reason[0] != '\0' ? it->failure.asked
             : it->failure.error != 0      ? it->failure.error
                                           : EPIPE;
    return KF_IO_ERROR;
}

/* Large pieces are encrypted where they lie; small ones share a record, for which they are copied.
 *
 * A record that is held up counts as written when it has gone. The caller offers what was not
 * written again, and only ever adds to it: its bytes are then passed over. */
static int64_t tls_write(void *context, const struct iovec *pieces, int count, int *error) {
    kf_tls *it = context;
    int64_t total = 0;
    size_t pos = 0, rest = 0, written = 0;
    for (int i = 0; i < count; i++) {
        rest += pieces[i].iov_len;
    }
    if (it->is_held_up) {
        int64_t sent = send_sealed(it, NULL, 0);
        if (sent < 0) {
            return sent == KF_IO_WANT_WRITE ? sent : write_failed(it, error);
        }
        it->is_held_up = false;
        written = it->owed;
        it->owed = 0;
    }
    for (;;) {
        total += (int64_t)written;
        rest -= written;
        pos += written;
        while (count > 0 && pos >= pieces->iov_len) {
            pos -= pieces->iov_len;
            pieces++;
            count--;
        }
        if (count == 0) {
            return total;
        }
        size_t left = pieces->iov_len - pos;
        const uint8_t *data = (const uint8_t *)pieces->iov_base + pos;
        size_t size = KF_TLS_RECORD;
        if (left < KF_TLS_RECORD) {
            data = it->gathered;
            size = gather(it->gathered, pieces, count, pos);
        }
        ERR_clear_error();
        /* With the last bytes goes all that is sealed: what counts as written needs no other call.
         */
        it->more_follows = rest > size;
        it->is_writing = true;
        int result = SSL_write_ex(it->ssl, data, size, &written);
        it->is_writing = it->more_follows = false;
        if (result == 1 && !it->is_held_up) {
            continue;
        }
        int64_t meaning = result == 1 ? KF_IO_WANT_WRITE : outcome(it, result);
        it->owed = result == 1 ? written : 0;
        if (total > 0) {
            return total; /* what failed, fails again */
        }
        return meaning == 0 || meaning == KF_IO_ERROR ? write_failed(it, error) : meaning;
    }
}

static size_t tls_pending(void *context) {
    const kf_tls *it = context;
    /* Part of a record may lie in OpenSSL's buffer; only the poller knows when the rest comes. */
    return it->drained ? 0 : (size_t)SSL_has_pending(it->ssl);
}

static size_t tls_explain(void *context, char *into, size_t size) {
    const kf_tls *it = context;
    return (size_t)snprintf(into, size, "%s", it->failure.reason);
}

static void tls_close(void *context) {
    kf_tls *it = context;
    if (!it->failed) {
        ERR_clear_error();
        SSL_shutdown(it->ssl); /* says close_notify; nobody waits for the answer */
        ERR_clear_error();
        it->failed = true;
    }
    it->below.close(it->below.context);
}

static void tls_dispose(void *context) {
    kf_tls *it = context;
    SSL_free(it->ssl);
    it->below.dispose(it->below.context);
    kf_tls_context_release(it->context);
    free(it);
}

/* ---- a connection's life ---- */

/* Say what the certificate must name. False: OpenSSL did not take it, and would check nothing. */
static bool demand_name(SSL *ssl, const char *name, bool is_ip, bool checks_host) {
    if (!is_ip && SSL_set_tlsext_host_name(ssl, name) != 1) { /* RFC 6066: no addresses */
        return false;
    }
    if (!checks_host) {
        return true;
    }
    if (is_ip) {
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
    }
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, name) == 1;
}

static kf_tls *tls_connect(kf_tls_context *context, const kf_link_io *below, const char *name,
                           bool is_ip, bool checks_host) {
    kf_tls *it = calloc(1, sizeof *it);
    BIO *bio = NULL;
    ERR_clear_error();
    if (it == NULL || !CRYPTO_THREAD_run_once(&method_once, make_method) || method == NULL ||
        (it->ssl = SSL_new(context->ssl)) == NULL ||
        !demand_name(it->ssl, name, is_ip, checks_host) || (bio = BIO_new(method)) == NULL) {
        if (it != NULL) {
            SSL_free(it->ssl);
        }
        free(it);
        below->close(below->context);
        below->dispose(below->context);
        return NULL;
    }
    it->below = *below;
    it->context = kf_tls_context_share(context);
    BIO_set_data(bio, it);
    BIO_set_init(bio, 1);
    SSL_set_bio(it->ssl, bio, bio);
    SSL_set_app_data(it->ssl, it);
    SSL_set_connect_state(it->ssl);
    return it;
}

static int tls_handshake(kf_tls *it, kf_tls_failure *failure) {
    ERR_clear_error();
    it->may_read = true;
    int result = SSL_do_handshake(it->ssl);
    if (result == 1) {
        return 0;
    }
    int64_t meaning = outcome(it, result);
    if (meaning == KF_IO_WANT_READ || meaning == KF_IO_WANT_WRITE) {
        return (int)meaning;
    }
    *failure = it->failure;
    return KF_IO_ERROR;
}

static kf_link_io tls_io(kf_tls *it) {
    return (kf_link_io){
        .write = tls_write,
        .read = tls_read,
        .pending = tls_pending,
        .explain = tls_explain,
        .close = tls_close,
        .dispose = tls_dispose,
        .context = it,
    };
}

static void tls_drop(kf_tls *it) {
    it->failed = true; /* before the end of a handshake there is nothing to say good-bye to */
    tls_close(it);
    tls_dispose(it);
}

static const char *version(void) {
    return OpenSSL_version(OPENSSL_VERSION);
}

static const kf_tls_expiry *trusted_until(const kf_tls_context *context) {
    return &context->trusted;
}

static const kf_tls_expiry *certified_until(const kf_tls_context *context) {
    return &context->own;
}

static const kf_tls_library library = {
    .version = version,
    .reason = kf_tls_reason,
    .context_new = kf_tls_context_new,
    .context_share = kf_tls_context_share,
    .context_release = kf_tls_context_release,
    .suites = kf_tls_suites,
    .trust = kf_tls_trust,
    .trust_system = kf_tls_trust_system,
    .trust_at = kf_tls_trust_at,
    .revoke = kf_tls_revoke,
    .certify = kf_tls_certify,
    .key = kf_tls_key,
    .identity = kf_tls_identity,
    .log_keys = kf_tls_log_keys,
    .trusted_until = trusted_until,
    .certified_until = certified_until,
    .connect = tls_connect,
    .handshake = tls_handshake,
    .io = tls_io,
    .drop = tls_drop,
};

const kf_tls_library *kf_tls_library_here(void) {
    return &library;
}

#endif
