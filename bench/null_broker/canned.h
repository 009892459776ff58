/* The log that a consumer reads: one record batch, served over and over.
 *
 * Every partition of every topic holds `copies` of it. Only the base offset differs from one copy
 * to the next, and that is outside the CRC, so the log needs no memory and its batches are as real
 * as the first one. Without a batch every log is empty.
 */
#ifndef NB_CANNED_H
#define NB_CANNED_H

#include "handlers.h"
#include "wire.h"

enum { LIST_OFFSETS_MIN = 1, LIST_OFFSETS_MAX = 7, FETCH_MIN = 4, FETCH_MAX = 17 };

/* Take the batch from a file; false if it is not there or is no batch v2. Before the first thread.
 */
bool load_batch(const char *path);
void set_copies(int64_t copies);

/* Nobody coordinates groups here: says so. */
void handle_find_coordinator(struct stream *in, struct request *request, struct out *out);
/* The first offset, or the end for every timestamp but the special one of the beginning. */
void handle_list_offsets(struct stream *in, struct request *request, int node, struct out *out);
/* Never opens a session (KIP-227): each request names all of its partitions. */
void handle_fetch(struct stream *in, struct request *request, int node, struct out *out);

#endif /* NB_CANNED_H */
