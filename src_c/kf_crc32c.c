/* CRC32C by four paths; the first one that the CPU has is chosen at the first call.
 *
 *   vpclmulqdq  four 64-byte vectors folded forward, from 256 bytes on (AVX-512)
 *   sse4.2      three chains of `crc32q`, joined by one carry-less multiplication each
 *   armv8       the same with `crc32cx` and PMULL
 *   table       slice-by-8
 *
 * Arithmetic. A CRC is a polynomial modulo P over GF(2), with its bits reflected: bit 31 is x^0.
 * "Shifting" a CRC past n further zero bits multiplies it by x^n mod P. The instruction pair
 * clmul + crc32q multiplies by 33 more: clmul(a, b) read as 64 reflected bits is a*b*x, and
 * crc32q(0, v) is v*x^32 mod P. So the factor that shifts by n bits is kept as x^(n - 33), and the
 * vector folds, whose constants sit in the low half of a 64-bit lane, want exactly the same one.
 * Hence one table, `shift_words[i]` = x^(64 i - 33) mod P, feeds every path.
 */
#include "kf_crc32c.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <arm_acle.h>
#include <arm_neon.h>
#include <sys/auxv.h>
#endif

enum {
    CHAIN_WORDS_MIN = 4,   /* shorter chains cost more to join than they save */
    CHAIN_WORDS_MAX = 256, /* of 8 bytes; joins of longer chains no longer show */
    PATHS_MAX = 3,
};

static const uint32_t POLYNOMIAL = 0x82f63b78U; /* P without x^32, reflected */
static const uint32_t ONE = 0x80000000U;        /* x^0 */
static const uint64_t ORDER = 0x7fffffffU;      /* x^(2^31 - 1) == 1 mod P */

/* Takes and returns the raw CRC register, that is, the complement of a finished CRC. */
typedef uint32_t (*crc_path)(uint32_t crc, const uint8_t *at, size_t len);

/* Multiply a CRC by a factor that lacks 33 powers of x, see above. */
typedef uint32_t (*crc_shift)(uint32_t crc, uint32_t factor);

typedef struct named_path {
    const char *name;
    crc_path run;
    crc_shift shift;
} named_path;

/* All written once, by set_up(). */
static uint32_t table[8][256];
static uint32_t shift_words[2 * CHAIN_WORDS_MAX + 1]; /* [i]: by i words; [0] is not used */
static uint32_t shift_digits[16][16]; /* [k][d]: by d * 16^k bytes, for the digits of a length */
static uint32_t x_33;                 /* x^33 */
static named_path paths[PATHS_MAX];
static size_t path_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static inline uint64_t load_word(const uint8_t *at) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* ---- polynomials, slowly ---- */

static uint32_t times_x(uint32_t a) {
    return (a >> 1) ^ ((a & 1) != 0 ? POLYNOMIAL : 0);
}

static uint32_t multiply(uint32_t a, uint32_t b) {
    uint32_t product = 0;
    for (; a != 0; a <<= 1, b = times_x(b)) {
        product ^= (a & ONE) != 0 ? b : 0;
    }
    return product;
}

static uint32_t x_to(uint64_t exponent) {
    uint32_t power = ONE;
    uint32_t square = ONE >> 1;
    for (; exponent != 0; exponent >>= 1, square = multiply(square, square)) {
        power = (exponent & 1) != 0 ? multiply(power, square) : power;
    }
    return power;
}

/* ---- the portable path ---- */

static uint32_t shift_by_bits(uint32_t crc, uint32_t factor) {
    return multiply(multiply(crc, factor), x_33);
}

static uint32_t crc_table(uint32_t crc, const uint8_t *at, size_t len) {
    for (; len >= 8; at += 8, len -= 8) {
        uint64_t word = load_word(at) ^ crc;
        crc = table[7][word & 0xff] ^ table[6][word >> 8 & 0xff] ^ table[5][word >> 16 & 0xff] ^
              table[4][word >> 24 & 0xff] ^ table[3][word >> 32 & 0xff] ^
              table[2][word >> 40 & 0xff] ^ table[1][word >> 48 & 0xff] ^ table[0][word >> 56];
    }
    for (; len != 0; at++, len--) {
        crc = (crc >> 8) ^ table[0][(crc ^ *at) & 0xff];
    }
    return crc;
}

/* ---- three chains of the CRC instruction: x86 and ARM differ only in these names ---- */

#if defined(__x86_64__)
#define KF_HAVE_CRC_INSTRUCTION 1
#define CRC_TARGET __attribute__((target("sse4.2,pclmul")))
#define CRC_WORD(crc, word) ((uint32_t)_mm_crc32_u64((crc), (word)))
#define CRC_HALF(crc, half) _mm_crc32_u32((crc), (half))
#define CRC_BYTE(crc, byte) _mm_crc32_u8((crc), (byte))
#define CARRYLESS(a, b)                                                                            \
    ((uint64_t)_mm_cvtsi128_si64(_mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)(uint64_t)(a)),   \
                                                      _mm_cvtsi64_si128((int64_t)(uint64_t)(b)),   \
                                                      0x00)))
#elif defined(__aarch64__) && defined(__linux__)
#define KF_HAVE_CRC_INSTRUCTION 1
#define CRC_TARGET __attribute__((target("arch=armv8-a+crc+crypto")))
#define CRC_WORD(crc, word) __crc32cd((crc), (word))
#define CRC_HALF(crc, half) __crc32cw((crc), (half))
#define CRC_BYTE(crc, byte) __crc32cb((crc), (byte))
#define CARRYLESS(a, b)                                                                            \
    vgetq_lane_u64(vreinterpretq_u64_p128(vmull_p64((poly64_t)(a), (poly64_t)(b))), 0)
#endif

#ifdef KF_HAVE_CRC_INSTRUCTION

CRC_TARGET static inline uint32_t crc_one_chain(uint32_t crc, const uint8_t *at, size_t len) {
    for (; len >= 8; at += 8, len -= 8) {
        crc = CRC_WORD(crc, load_word(at));
    }
    if (len >= 4) {
        uint32_t half;
        memcpy(&half, at, sizeof half);
        crc = CRC_HALF(crc, half);
        at += 4;
        len -= 4;
    }
    for (; len != 0; at++, len--) {
        crc = CRC_BYTE(crc, *at);
    }
    return crc;
}

/* The instruction takes three cycles and one can start each cycle: three chains fill the pipe. */
CRC_TARGET static uint32_t crc_three_chains(uint32_t crc, const uint8_t *at, size_t len) {
    while (len >= (size_t)3 * CHAIN_WORDS_MIN * 8) {
        size_t words = len / 24 < CHAIN_WORDS_MAX ? len / 24 : CHAIN_WORDS_MAX;
        size_t size = words * 8;
        const uint8_t *end = at + size - 8;
        uint32_t first = crc;
        uint32_t second = 0;
        uint32_t third = 0;
        for (; at < end; at += 8) {
            first = CRC_WORD(first, load_word(at));
            second = CRC_WORD(second, load_word(at + size));
            third = CRC_WORD(third, load_word(at + 2 * size));
        }
        /* The joins ride on the third chain's last word: crc32q reduces them along with it. */
        first = CRC_WORD(first, load_word(at));
        second = CRC_WORD(second, load_word(at + size));
        crc = CRC_WORD(third, load_word(at + 2 * size) ^ CARRYLESS(first, shift_words[2 * words]) ^
                                  CARRYLESS(second, shift_words[words]));
        at += 2 * size + 8;
        len -= 3 * size;
    }
    return crc_one_chain(crc, at, len);
}

CRC_TARGET static uint32_t shift_by_instruction(uint32_t crc, uint32_t factor) {
    return CRC_WORD(0, CARRYLESS(crc, factor));
}

#endif /* KF_HAVE_CRC_INSTRUCTION */

/* ---- vectors ---- */

#if defined(__x86_64__)

#define VECTOR_TARGET __attribute__((target("avx512f,vpclmulqdq,sse4.2,pclmul")))

/* Factors that move each 128-bit lane forward by `words` words: its low half is 64 bits further
 * from the destination than its high half. */
VECTOR_TARGET static inline __m512i fold_factors(size_t words) {
    int64_t high = shift_words[words];
    int64_t low = shift_words[words + 1];
    return _mm512_set_epi64(high, low, high, low, high, low, high, low);
}

VECTOR_TARGET static inline __m512i fold(__m512i lanes, __m512i factors, __m512i onto) {
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(lanes, factors, 0x00),
                                     _mm512_clmulepi64_epi128(lanes, factors, 0x11), onto, 0x96);
}

/* Fold the first three lanes onto the fourth: 16 bytes whose CRC is the whole vector's. */
VECTOR_TARGET static inline uint32_t reduce_lanes(__m512i lanes) {
    __m512i factors = _mm512_set_epi64(0, 0, shift_words[2], shift_words[3], shift_words[4],
                                       shift_words[5], shift_words[6], shift_words[7]);
    __m512i last = _mm512_maskz_mov_epi64(0xc0, lanes);
    uint64_t words[8];
    _mm512_storeu_si512(words, fold(lanes, factors, last));
    uint64_t low = words[0] ^ words[2] ^ words[4] ^ words[6];
    uint64_t high = words[1] ^ words[3] ^ words[5] ^ words[7];
    return CRC_WORD(CRC_WORD(0, low), high);
}

VECTOR_TARGET static uint32_t crc_vectors(uint32_t crc, const uint8_t *at, size_t len) {
    if (len < 256) {
        return crc_three_chains(crc, at, len);
    }
    __m512i a = _mm512_xor_si512(_mm512_loadu_si512(at),
                                 _mm512_set_epi64(0, 0, 0, 0, 0, 0, 0, (int64_t)(uint64_t)crc));
    __m512i b = _mm512_loadu_si512(at + 64);
    __m512i c = _mm512_loadu_si512(at + 128);
    __m512i d = _mm512_loadu_si512(at + 192);
    const __m512i by_256 = fold_factors(32);
    for (at += 256, len -= 256; len >= 256; at += 256, len -= 256) {
        a = fold(a, by_256, _mm512_loadu_si512(at));
        b = fold(b, by_256, _mm512_loadu_si512(at + 64));
        c = fold(c, by_256, _mm512_loadu_si512(at + 128));
        d = fold(d, by_256, _mm512_loadu_si512(at + 192));
    }
    const __m512i by_64 = fold_factors(8);
    d = fold(b, fold_factors(16), fold(c, by_64, d));
    d = fold(a, fold_factors(24), d);
    for (; len >= 64; at += 64, len -= 64) {
        d = fold(d, by_64, _mm512_loadu_si512(at));
    }
    return crc_one_chain(reduce_lanes(d), at, len);
}

#endif

/* ---- the choice ---- */

static crc_path _Atomic chosen; /* NULL until set_up() ran */

static void add_path(const char *name, crc_path run, crc_shift shift) {
    paths[path_count++] = (named_path){name, run, shift};
}

static void find_paths(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul")) {
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq")) {
            add_path("vpclmulqdq", crc_vectors, shift_by_instruction);
        }
        add_path("sse4.2", crc_three_chains, shift_by_instruction);
    }
#elif defined(KF_HAVE_CRC_INSTRUCTION)
    unsigned long have = getauxval(AT_HWCAP);
    if ((have & HWCAP_CRC32) != 0 && (have & HWCAP_PMULL) != 0) {
        add_path("armv8", crc_three_chains, shift_by_instruction);
    }
#endif
    add_path("table", crc_table, shift_by_bits);
}

static void fill_tables(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++) {
            crc = times_x(crc);
        }
        table[0][byte] = crc;
    }
    for (size_t slice = 1; slice < 8; slice++) {
        for (size_t byte = 0; byte < 256; byte++) {
            uint32_t crc = table[slice - 1][byte];
            table[slice][byte] = (crc >> 8) ^ table[0][crc & 0xff];
        }
    }
    uint32_t factor = x_to(ORDER - 33);
    uint32_t step = x_to(64);
    for (size_t words = 1; words < sizeof shift_words / sizeof shift_words[0]; words++) {
        factor = multiply(factor, step);
        shift_words[words] = factor;
    }
    uint32_t unit = x_to(8); /* shifts by 16^k bytes */
    for (size_t k = 0; k < 16; k++) {
        factor = x_to(ORDER - 33);
        for (size_t digit = 1; digit < 16; digit++) {
            factor = multiply(factor, unit);
            shift_digits[k][digit] = factor;
        }
        for (int square = 0; square < 4; square++) {
            unit = multiply(unit, unit);
        }
    }
    x_33 = x_to(33);
}

static void set_up(void) {
    fill_tables();
    find_paths();
    atomic_store_explicit(&chosen, paths[0].run, memory_order_release);
}

static void set_up_once(void) {
    pthread_once(&once, set_up);
}

static const named_path *path_at(size_t path) {
    set_up_once();
    return &paths[path < path_count ? path : path_count - 1];
}

uint32_t kf_crc32c(uint32_t crc, const void *data, size_t len) {
    crc_path run = atomic_load_explicit(&chosen, memory_order_acquire);
    if (__builtin_expect(run == NULL, 0)) {
        set_up_once();
        run = paths[0].run;
    }
    return ~run(~crc, data, len);
}

uint32_t kf_crc32c_combine(uint32_t crc_a, uint32_t crc_b, size_t len_b) {
    return kf_crc32c_combine_by_path(0, crc_a, crc_b, len_b);
}

size_t kf_crc32c_path_count(void) {
    set_up_once();
    return path_count;
}

const char *kf_crc32c_path_name(size_t path) {
    return path_at(path)->name;
}

uint32_t kf_crc32c_by_path(size_t path, uint32_t crc, const void *data, size_t len) {
    return ~path_at(path)->run(~crc, data, len);
}

uint32_t kf_crc32c_combine_by_path(size_t path, uint32_t crc_a, uint32_t crc_b, size_t len_b) {
    crc_shift shift = path_at(path)->shift;
    for (size_t k = 0; len_b != 0; k++, len_b >>= 4) {
        if ((len_b & 15) != 0) {
            crc_a = shift(crc_a, shift_digits[k][len_b & 15]);
        }
    }
    return crc_a ^ crc_b;
}
