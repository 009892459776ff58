/* CRC32C (Castagnoli), as record batches use it, on the fastest path that this CPU has.
 *
 * All CRCs here are finished ones, in and out: 0 to begin, and the result of one call continues
 * the next: crc(A then B) == kf_crc32c(kf_crc32c(0, A), B). Any thread; no allocation.
 */
#ifndef KF_CRC32C_H
#define KF_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continue `crc` over `len` bytes at `data` (which may be NULL if `len` is 0). */
uint32_t kf_crc32c(uint32_t crc, const void *data, size_t len);

/* CRC of A followed by B, from the CRC of each and the length of B: lets a batch's header change
 * (producer id, epoch, sequence) without reading its records again. */
uint32_t kf_crc32c_combine(uint32_t crc_a, uint32_t crc_b, size_t len_b);

/* The paths that work on this CPU, best first: number 0 is the one kf_crc32c() takes. The last is
 * always the portable table. For `info` and for tests, which run each of them. */
size_t kf_crc32c_path_count(void);
const char *kf_crc32c_path_name(size_t path);
uint32_t kf_crc32c_by_path(size_t path, uint32_t crc, const void *data, size_t len);
uint32_t kf_crc32c_combine_by_path(size_t path, uint32_t crc_a, uint32_t crc_b, size_t len_b);

#endif /* KF_CRC32C_H */
