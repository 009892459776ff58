/* Columns: the input gives the contents of a column's buffers, each allocated in its exact size.
 * The items that the check allows are read. Headers are made of them, written and read again. */
#include <string.h>

#include "fuzz.h"
#include "kf_column.h"

enum {
    KF_HEADERS = KF_COLUMN_VIEWS + 1, /* not a layout: two columns of pairs, and lists of these */
    KF_BLOBS = 3,
    KF_BUFFERS = 32,
};

typedef struct kf_program {
    kf_reader in; /* gives zeros after its end */
    void *buffers[KF_BUFFERS];
    int buffer_count;
} kf_program;

static int64_t small(kf_program *program, int limit) {
    return (uint8_t)kf_read_i8(&program->in) % limit;
}

static void *allocated(kf_program *program, int64_t count, size_t size) {
    void *start = calloc((size_t)count, size);
    KF_MUST(start != NULL && program->buffer_count < KF_BUFFERS);
    program->buffers[program->buffer_count++] = start;
    return start;
}

/* Return `size` bytes at an odd address: neither Arrow nor Python promises an alignment. */
static uint8_t *buffer(kf_program *program, int64_t size) {
    return (uint8_t *)allocated(program, size + 1, 1) + 1;
}

static uint8_t *filled(kf_program *program, int64_t size) {
    uint8_t *bytes = buffer(program, size);
    for (int64_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)kf_read_i8(&program->in);
    }
    return bytes;
}

static bool is_valid(const kf_column *column, int64_t place) {
    return column->validity == NULL || (column->validity[place / 8] & (1 << place % 8)) != 0;
}

/* ---- making a column; each returns what the check must return, or -2 if that is not known ---- */

static int64_t make_offsets(kf_program *program, kf_column *column, int64_t count, int64_t size) {
    bool hostile = small(program, 2) == 1;
    bool wide = column->layout == KF_COLUMN_OFFSETS64;
    size_t width = wide ? sizeof(int64_t) : sizeof(int32_t);
    int64_t entries = column->start + count + 1;
    int64_t bad = -1;
    uint8_t *at = buffer(program, entries * (int64_t)width);
    column->offsets = at;
    int64_t offset = 0;
    for (int64_t i = 0; i < entries; i++, at += width) {
        if (hostile) {
            offset = wide ? kf_read_i64(&program->in) : kf_read_i32(&program->in);
        } else {
            offset += small(program, 16);
        }
        int32_t narrow = (int32_t)offset;
        memcpy(at, wide ? (const void *)&offset : (const void *)&narrow, width);
        if (bad == -1 && i > column->start && offset > size) {
            bad = i - 1 - column->start;
        }
    }
    return hostile ? -2 : bad;
}

static int64_t make_views(kf_program *program, kf_column *column, int64_t count) {
    const void **blobs = allocated(program, KF_BLOBS, sizeof *blobs);
    int64_t *sizes = allocated(program, KF_BLOBS, sizeof *sizes);
    column->blob_count = small(program, KF_BLOBS + 1);
    for (int64_t i = 0; i < column->blob_count; i++) {
        sizes[i] = small(program, 64);
        blobs[i] = filled(program, sizes[i]);
    }
    column->blobs = blobs;
    column->blob_sizes = sizes;
    bool hostile = small(program, 2) == 1;
    int64_t bad = -1;
    uint8_t *at = buffer(program, (column->start + count) * KF_VIEW_SIZE);
    column->data = at;
    for (int64_t i = 0; i < column->start + count; i++, at += KF_VIEW_SIZE) {
        int32_t len = hostile ? kf_read_i32(&program->in) : (int32_t)small(program, 32);
        int32_t blob = hostile ? kf_read_i32(&program->in) : (int32_t)small(program, KF_BLOBS + 1);
        int32_t pos = hostile ? kf_read_i32(&program->in) : (int32_t)small(program, 64);
        memcpy(at, &len, sizeof len);
        memcpy(at + 8, &blob, sizeof blob);
        memcpy(at + 12, &pos, sizeof pos);
        bool valid = is_valid(column, i);
        bool sound = len >= 0;
        if (len > KF_VIEW_INLINE_MAX) {
            sound = blob >= 0 && blob < column->blob_count && pos >= 0 &&
                    (int64_t)pos + len <= sizes[blob];
        }
        if (bad == -1 && i >= column->start && valid && !sound) {
            bad = i - column->start;
        }
    }
    return bad;
}

static int64_t make_rows(kf_program *program, kf_column *column, int64_t count) {
    column->width = small(program, 24);
    int64_t rows = column->start + count;
    int64_t step = small(program, 2) ? column->width + small(program, 4) : 0;
    bool backwards = small(program, 2) == 1;
    uint8_t *bytes = filled(program, rows == 0 ? 0 : (rows - 1) * step + column->width);
    column->stride = backwards ? -step : step;
    column->data = backwards && rows > 0 ? bytes + (rows - 1) * step : bytes;
    return -1;
}

/* Make a column of `layout` and `count` items, and check it; return how many of them are sound. */
static int64_t make_column(kf_program *program, kf_column *column, int layout, int64_t count,
                           int64_t size) {
    memset(column, 0, sizeof *column);
    column->layout = layout;
    column->start = small(program, 12);
    if (small(program, 2)) {
        column->validity = filled(program, (column->start + count + 7) / 8);
    }
    int64_t expected = -1;
    if (layout == KF_COLUMN_OFFSETS32 || layout == KF_COLUMN_OFFSETS64) {
        column->data = filled(program, size);
        expected = make_offsets(program, column, count, size);
    } else if (layout == KF_COLUMN_VIEWS) {
        expected = make_views(program, column, count);
    } else if (layout != KF_COLUMN_NULLS) {
        expected = make_rows(program, column, count);
    }
    int64_t bad = kf_column_check(column, count, size);
    KF_MUST(bad >= -1 && bad < count && (expected == -2 || bad == expected));
    int64_t of_any_size = kf_column_check(column, count, -1);
    KF_MUST(of_any_size == -1 || (bad != -1 && bad <= of_any_size));
    return bad == -1 ? count : bad;
}

/* ---- reading ---- */

static void touch_item(const kf_column *column, int64_t i) {
    int64_t len;
    const uint8_t *item = kf_column_get(column, i, &len);
    bool null = column->layout == KF_COLUMN_NULLS || !is_valid(column, column->start + i);
    KF_MUST((item == NULL) == null && (len == -1) == null && len >= -1);
    if (len > 0) {
        kf_touch(item, (size_t)len);
    }
    if (item != NULL && column->layout == KF_COLUMN_VIEWS) {
        const uint8_t *view = column->data + (column->start + i) * KF_VIEW_SIZE;
        bool is_inline = item == view + 4;
        KF_MUST(is_inline == (len <= KF_VIEW_INLINE_MAX));
    }
    if (item != NULL && column->layout == KF_COLUMN_PADDED) {
        KF_MUST(len == 0 || item[len - 1] != 0);
        for (int64_t pad = len; pad < column->width; pad++) {
            KF_MUST(item[pad] == 0);
        }
    }
}

static void read_item(kf_reader *reader, const kf_column *column, int64_t i) {
    int64_t len;
    const uint8_t *item = kf_column_get(column, i, &len);
    KF_MUST(kf_read_varint(reader) == len);
    if (len > 0) {
        KF_MUST(memcmp(kf_read_span(reader, len), item, (size_t)len) == 0);
    }
}

static void check_headers(const kf_header_column *headers, int64_t row) {
    int64_t count;
    int64_t first = kf_headers_get(headers, row, &count);
    size_t size = kf_headers_size(headers, row);
    uint8_t *out = malloc(size);
    KF_MUST(out != NULL && kf_put_headers(out, headers, row) == out + size);
    kf_reader reader = kf_reader_of(out, size);
    KF_MUST(kf_read_varint(&reader) == count);
    for (int64_t pair = first; pair < first + count; pair++) {
        read_item(&reader, &headers->keys, pair);
        read_item(&reader, &headers->values, pair);
    }
    KF_MUST(!reader.bad && kf_left(&reader) == 0);
    free(out);
}

static void make_headers(kf_program *program) {
    kf_header_column headers;
    int64_t pairs = small(program, 128); /* a count takes a second byte at 64 */
    int64_t rows = small(program, 24);
    int layout = (int)small(program, KF_HEADERS);
    int64_t sound = make_column(program, &headers.keys, layout, pairs, small(program, 128));
    layout = (int)small(program, KF_HEADERS);
    int64_t other = make_column(program, &headers.values, layout, pairs, small(program, 128));
    layout = small(program, 2) ? KF_COLUMN_OFFSETS64 : KF_COLUMN_OFFSETS32;
    sound = sound < other ? sound : other;
    rows = make_column(program, &headers.lists, layout, rows, sound);
    for (int64_t row = 0; row < rows; row++) {
        check_headers(&headers, row);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kf_program program = {.in = kf_reader_of(data, size)};
    int layout = (int)small(&program, KF_HEADERS + 1);
    if (layout == KF_HEADERS) {
        make_headers(&program);
    } else {
        kf_column column;
        int64_t count = small(&program, 64);
        count = make_column(&program, &column, layout, count, small(&program, 256));
        for (int64_t i = 0; i < count; i++) {
            touch_item(&column, i);
        }
    }
    while (program.buffer_count > 0) {
        free(program.buffers[--program.buffer_count]);
    }
    return 0;
}
