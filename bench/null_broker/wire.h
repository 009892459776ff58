/* Kafka's encodings as the null broker needs them: fields read from a socket, answers built in
 * memory.
 *
 * Reads never fail one by one: a field past the end of its frame, or of the connection, is zero and
 * sets `bad`, which stays set; the caller checks once per unit and ends the connection.
 */
#ifndef NB_WIRE_H
#define NB_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FIELDS_BUFFER = 4 << 10, /* fields are read in gulps of this; records behind them are dropped */
    CHECK_BUFFER = 64 << 10, /* the gulp where every record byte has to be read anyway */
    TOPIC_NAME_SIZE = 256,
    TOPIC_ID_SIZE = 16,
};

/* One connection's input, inside a frame or between two. */
struct stream {
    int fd;
    size_t gulp; /* most bytes that one read copies */
    size_t pos, end; /* what of `bytes` was read from the socket and not taken yet */
    size_t left; /* bytes of the current frame that were not taken yet */
    bool bad; /* malformed, or the peer is gone */
    int64_t filled_ns; /* monotonic time of the last read from the socket */
    int64_t arrived_ns; /* the same, of the read that brought the current frame's first byte */
    uint8_t bytes[CHECK_BUFFER];
};

/* The header of a record batch, and what reading it showed. */
struct batch {
    int64_t size; /* bytes, header included */
    int64_t producer_id;
    int16_t producer_epoch;
    int32_t base_sequence;
    int32_t record_count;
    int16_t error; /* 0, or why a broker refuses it */
};

enum {
    ERROR_OFFSET_OUT_OF_RANGE = 1,
    ERROR_CORRUPT_MESSAGE = 2,
    ERROR_UNKNOWN_TOPIC_OR_PARTITION = 3,
    ERROR_NOT_LEADER = 6,
    ERROR_COORDINATOR_NOT_AVAILABLE = 15,
    ERROR_UNSUPPORTED_VERSION = 35,
    ERROR_OUT_OF_ORDER_SEQUENCE = 45,
    ERROR_DUPLICATE_SEQUENCE = 46,
    ERROR_INVALID_RECORD = 87,
};

int64_t monotonic_ns(void);

/* Begin a frame: wait for its size and return it; the caller sets `left`. */
int32_t stream_frame(struct stream *in);
void stream_take(struct stream *in, void *to, size_t size);
/* Drop bytes of the frame; those that are still in the kernel are never copied. */
void stream_skip(struct stream *in, size_t size);

int16_t get_i16(struct stream *in);
int32_t get_i32(struct stream *in);
int64_t get_i64(struct stream *in);
/* The number of an array's elements, or -1 for null; never more than the frame's bytes. */
int64_t get_count(struct stream *in, bool flexible);
/* The size of a bytes field, or -1 for null. */
int64_t get_size(struct stream *in, bool flexible);
/* Read a string with its final zero; return false if it is null. */
bool get_string(struct stream *in, char *to, size_t capacity, bool flexible);
void get_tags(struct stream *in, bool flexible);
/* Read the `size` bytes of a partition's records, which have to be one batch v2. */
void read_batch(struct stream *in, size_t size, bool check_crc, struct batch *batch);

/* An answer being built; `data` is the caller's to free. */
struct out {
    uint8_t *data;
    size_t size, capacity;
};

void put_bytes(struct out *out, const void *from, size_t size); /* zeros if `from` is NULL */
void put_i8(struct out *out, int8_t value);
void put_i16(struct out *out, int16_t value);
void put_i32(struct out *out, int32_t value);
void put_i64(struct out *out, int64_t value);
void put_count(struct out *out, size_t count, bool flexible);
void put_string(struct out *out, const char *text, bool flexible); /* null if `text` is NULL */
void put_tags(struct out *out, bool flexible);
/* Write the frame's size into its first four bytes. */
void patch_size(struct out *out);

#endif /* NB_WIRE_H */
