/* The Arrow C data interface, as its specification gives it: three structs that any two libraries
 * of one process can pass columns with.
 *
 * A receiver that moves an ArrowArray or ArrowArrayStream out owns it, and calls its `release`.
 */
#ifndef KF_ARROW_H
#define KF_ARROW_H

#include <stdint.h>

enum { KF_ARROW_NULLABLE = 2 }; /* the one flag of a schema that we set */

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

struct ArrowSchema {
    const char *format; /* the type, in a letter or a few */
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *); /* NULL: released, or moved away */
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count; /* -1: not counted */
    int64_t offset;     /* item 0's place in the buffers */
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers; /* the validity bitmap first, but for types without nulls */
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

#endif /* ARROW_C_DATA_INTERFACE */

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

/* The functions return 0 or an errno; an array without `release` is the end of the stream. */
struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

#endif /* ARROW_C_STREAM_INTERFACE */

#endif /* KF_ARROW_H */
