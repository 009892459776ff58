/* Arrow schemas and arrays that we hand out, with the release callbacks the interface asks for.
 *
 * Each array owns its own buffers, so a receiver may move children out of their parent, as the
 * specification allows. A buffer that `kf_array_lend` has set belongs to the array's keeper.
 */
#ifndef KF_ARROW_BUILD_H
#define KF_ARROW_BUILD_H

#include <stdbool.h>
#include <stddef.h>

#include "kf_arrow.h"

enum { KF_ARROW_ALIGNMENT = 64 }; /* of buffers, as Arrow recommends */

/* Ends the use of what borrowed buffers point into. Called once, in any thread. */
typedef void (*kf_arrow_drop)(void *keeper);

/* Make `schema` a type of that format with room for children, each of which must be opened too.
 * `format` and `name` must be literals. False: no memory, and there is nothing to release. */
bool kf_schema_open(struct ArrowSchema *schema, const char *format, const char *name, bool nullable,
                    int64_t n_children);

/* Give a dictionary's index type the values' schema, to be opened; NULL: no memory. */
struct ArrowSchema *kf_schema_dictionary(struct ArrowSchema *schema);

/* Make `array` one of `length` items. False: no memory, and there is nothing to release. */
bool kf_array_open(struct ArrowArray *array, int64_t length, int64_t n_buffers, int64_t n_children);

/* Allocate a buffer of the array; NULL: no memory. Its bytes are not set. */
void *kf_array_buffer(struct ArrowArray *array, int64_t index, size_t size);

/* Let a buffer point to memory that the array does not own. */
void kf_array_lend(struct ArrowArray *array, int64_t index, const void *data);

/* Have `drop(keeper)` called when the array is released. */
void kf_array_keep(struct ArrowArray *array, void *keeper, kf_arrow_drop drop);

/* Allocate the dictionary's array, to be opened; NULL: no memory. */
struct ArrowArray *kf_array_dictionary(struct ArrowArray *array);

/* Release what is not released yet, as receivers do. */
void kf_schema_release(struct ArrowSchema *schema);
void kf_array_release(struct ArrowArray *array);

#endif /* KF_ARROW_BUILD_H */
