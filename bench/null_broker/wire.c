/* See wire.h. */

#include "wire.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "kf_crc32c.h"
#include "state.h"

enum {
    BATCH_HEADER = 61,
    BATCH_LENGTH_AT = 8,
    BATCH_OVERHEAD = 12, /* base offset and length: what the length does not count */
    MAGIC_AT = 16,
    CRC_AT = 17,
    ATTRIBUTES_AT = 21, /* the CRC covers the batch from here */
    LAST_OFFSET_DELTA_AT = 23,
    PRODUCER_ID_AT = 43,
    PRODUCER_EPOCH_AT = 51,
    BASE_SEQUENCE_AT = 53,
    RECORD_COUNT_AT = 57,
};

int64_t monotonic_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static uint64_t load(const uint8_t *at, int size) {
    uint64_t value = 0;
    for (int i = 0; i < size; i++)
        value = value << 8 | at[i];
    return value;
}

/* Receive some bytes, at least one; return 0, with `bad` set, when there will be none.
 * Every read of a socket is under the reading lock, so that a broker that was told to stop has
 * stopped when it says so. */
static size_t receive(struct stream *in, void *to, size_t size, int flags) {
    while (!in->bad) {
        pthread_rwlock_rdlock(&state.reading);
        ssize_t got = recv(in->fd, to, size, flags);
        pthread_rwlock_unlock(&state.reading);
        if (got > 0)
            return (size_t)got;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            poll(&(struct pollfd){.fd = in->fd, .events = POLLIN}, 1, -1);
        else if (got == 0 || errno != EINTR)
            in->bad = true;
    }
    return 0;
}

static size_t buffered(struct stream *in) {
    if (in->pos == in->end) {
        in->pos = 0;
        in->end = receive(in, in->bytes, in->gulp, 0);
        in->filled_ns = monotonic_ns();
    }
    return in->end - in->pos;
}

static void take_raw(struct stream *in, uint8_t *to, size_t size) {
    while (size > 0) {
        size_t some = buffered(in);
        if (some == 0) {
            memset(to, 0, size);
            return;
        }
        some = some < size ? some : size;
        memcpy(to, in->bytes + in->pos, some);
        in->pos += some;
        to += some;
        size -= some;
    }
}

int32_t stream_frame(struct stream *in) {
    uint8_t raw[4];
    buffered(in);
    in->arrived_ns = in->filled_ns;
    take_raw(in, raw, sizeof raw);
    return (int32_t)load(raw, 4);
}

void stream_take(struct stream *in, void *to, size_t size) {
    if (in->bad || size > in->left) {
        in->bad = true;
        memset(to, 0, size);
        return;
    }
    in->left -= size;
    take_raw(in, to, size);
}

void stream_skip(struct stream *in, size_t size) {
    if (in->bad || size > in->left) {
        in->bad = true;
        return;
    }
    in->left -= size;
    size_t have = in->end - in->pos;
    have = have < size ? have : size;
    in->pos += have;
    for (size -= have; size > 0 && !in->bad;) {
        /* A short rest is read with the fields that follow it: one system call instead of two. */
        if (size < in->gulp / 2) {
            size_t some = buffered(in);
            some = some < size ? some : size;
            in->pos += some;
            size -= some;
        } else {
            size -= receive(in, NULL, size, MSG_TRUNC);
        }
    }
}

int16_t get_i16(struct stream *in) {
    uint8_t raw[2];
    stream_take(in, raw, sizeof raw);
    return (int16_t)load(raw, 2);
}

int32_t get_i32(struct stream *in) {
    uint8_t raw[4];
    stream_take(in, raw, sizeof raw);
    return (int32_t)load(raw, 4);
}

int64_t get_i64(struct stream *in) {
    uint8_t raw[8];
    stream_take(in, raw, sizeof raw);
    return (int64_t)load(raw, 8);
}

static uint32_t get_varint(struct stream *in) {
    uint32_t value = 0;
    uint8_t byte = 0;
    for (int shift = 0; shift < 35; shift += 7) {
        stream_take(in, &byte, 1);
        value |= (uint32_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
    in->bad = true;
    return 0;
}

int64_t get_size(struct stream *in, bool flexible) {
    return flexible ? (int64_t)get_varint(in) - 1 : get_i32(in);
}

int64_t get_count(struct stream *in, bool flexible) {
    int64_t count = get_size(in, flexible);
    if (count > (int64_t)in->left)
        in->bad = true; /* an element has at least one byte */
    return in->bad ? 0 : count;
}

bool get_string(struct stream *in, char *to, size_t capacity, bool flexible) {
    int64_t size = flexible ? (int64_t)get_varint(in) - 1 : get_i16(in);
    to[0] = 0;
    if (size < 0)
        return false;
    if ((size_t)size >= capacity) {
        in->bad = true;
        return false;
    }
    stream_take(in, to, (size_t)size);
    to[size] = 0;
    return true;
}

void get_tags(struct stream *in, bool flexible) {
    if (!flexible)
        return;
    for (uint32_t count = get_varint(in); count > 0 && !in->bad; count--) {
        get_varint(in); /* tag */
        stream_skip(in, get_varint(in));
    }
}

/* CRC32C over the next `size` bytes of the frame, on top of `crc`. */
static uint32_t checksum(struct stream *in, size_t size, uint32_t crc) {
    in->left -= size;
    while (size > 0) {
        size_t some = buffered(in);
        if (some == 0)
            break;
        some = some < size ? some : size;
        crc = kf_crc32c(crc, in->bytes + in->pos, some);
        in->pos += some;
        size -= some;
    }
    return crc;
}

void read_batch(struct stream *in, size_t size, bool check_crc, struct batch *batch) {
    uint8_t header[BATCH_HEADER];
    if (size < BATCH_HEADER) {
        stream_skip(in, size);
        return;
    }
    stream_take(in, header, sizeof header);
    if (in->bad)
        return;
    uint64_t whole = load(header + BATCH_LENGTH_AT, 4) + BATCH_OVERHEAD;
    batch->size = (int64_t)size;
    batch->producer_id = (int64_t)load(header + PRODUCER_ID_AT, 8);
    batch->producer_epoch = (int16_t)load(header + PRODUCER_EPOCH_AT, 2);
    batch->base_sequence = (int32_t)load(header + BASE_SEQUENCE_AT, 4);
    batch->record_count = (int32_t)load(header + RECORD_COUNT_AT, 4);
    int32_t last_delta = (int32_t)load(header + LAST_OFFSET_DELTA_AT, 4);
    batch->error = 0;
    if (header[MAGIC_AT] != 2)
        batch->error = ERROR_CORRUPT_MESSAGE;
    else if (whole != size) /* a second batch, or a batch that was cut */
        batch->error = ERROR_INVALID_RECORD;
    else if (batch->record_count <= 0 || last_delta != batch->record_count - 1)
        batch->error = ERROR_INVALID_RECORD;
    size_t rest = size - BATCH_HEADER;
    if (!check_crc) {
        stream_skip(in, rest);
        return;
    }
    uint32_t crc = kf_crc32c(0, header + ATTRIBUTES_AT, BATCH_HEADER - ATTRIBUTES_AT);
    if (checksum(in, rest, crc) != load(header + CRC_AT, 4) && batch->error == 0)
        batch->error = ERROR_CORRUPT_MESSAGE;
}

void put_bytes(struct out *out, const void *from, size_t size) {
    if (out->capacity - out->size < size) {
        out->capacity = 2 * out->capacity + size + 256;
        out->data = realloc(out->data, out->capacity);
        if (out->data == NULL)
            abort();
    }
    if (from != NULL)
        memcpy(out->data + out->size, from, size);
    else
        memset(out->data + out->size, 0, size);
    out->size += size;
}

static void put_integer(struct out *out, uint64_t value, int size) {
    uint8_t raw[8];
    for (int i = 0; i < size; i++)
        raw[i] = (uint8_t)(value >> 8 * (size - 1 - i));
    put_bytes(out, raw, (size_t)size);
}

void put_i8(struct out *out, int8_t value) {
    put_integer(out, (uint64_t)value, 1);
}

void put_i16(struct out *out, int16_t value) {
    put_integer(out, (uint64_t)value, 2);
}

void put_i32(struct out *out, int32_t value) {
    put_integer(out, (uint64_t)value, 4);
}

void put_i64(struct out *out, int64_t value) {
    put_integer(out, (uint64_t)value, 8);
}

static void put_varint(struct out *out, size_t value) {
    for (; value >= 0x80; value >>= 7)
        put_integer(out, value | 0x80, 1);
    put_integer(out, value, 1);
}

void put_count(struct out *out, size_t count, bool flexible) {
    if (flexible)
        put_varint(out, count + 1);
    else
        put_i32(out, (int32_t)count);
}

void put_string(struct out *out, const char *text, bool flexible) {
    size_t size = text != NULL ? strlen(text) : 0;
    if (flexible)
        put_varint(out, text != NULL ? size + 1 : 0);
    else
        put_i16(out, text != NULL ? (int16_t)size : -1);
    put_bytes(out, text, size);
}

void put_tags(struct out *out, bool flexible) {
    if (flexible)
        put_i8(out, 0);
}

void patch_size(struct out *out) {
    uint32_t size = (uint32_t)(out->size - 4);
    for (int i = 0; i < 4; i++)
        out->data[i] = (uint8_t)(size >> 8 * (3 - i));
}
