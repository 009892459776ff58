/* What the fuzz targets share. Each target is one LLVMFuzzerTestOneInput; run.sh builds them with
 * ASan and UBSan, so "touching" bytes is what proves that a pointer is good.
 */
#ifndef KF_FUZZ_H
#define KF_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A property that must hold; abort() is what libFuzzer reports and minimises. */
#define KF_MUST(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* Read each of `len` bytes. */
static inline void kf_touch(const uint8_t *data, size_t len) {
    volatile uint8_t sum = 0;
    for (size_t i = 0; i < len; i++) {
        sum = (uint8_t)(sum + data[i]);
    }
}

#endif /* KF_FUZZ_H */
