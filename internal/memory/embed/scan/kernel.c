//go:build cgo

#include "kernel.h"

// Instruction sets are asked for by function, not by compiler flag, so that one
// build runs on every processor of its architecture and picks at run time.
#if defined(__x86_64__) && (defined(__clang__) || __GNUC__ >= 9)
#define SCAN_X86 1
#include <immintrin.h>
#endif
#if defined(__aarch64__)
#define SCAN_ARM 1
#include <arm_neon.h>
#endif

enum { WIDEST = 1 << 14 };

static void dots_plain(int32_t *out, const int8_t *codes, const int16_t *query, long rows, long width) {
	for (long i = 0; i < rows; i++, codes += width) {
		int32_t sum = 0;
		for (long j = 0; j < width; j++) sum += (int32_t)codes[j] * query[j];
		out[i] = sum;
	}
}

#ifdef SCAN_X86

#define VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))

// One instruction multiplies 64 unsigned bytes with 64 signed ones and adds them
// up in fours. So the query is cut into two planes of signed bytes, q = 128·hi +
// lo, and 128 is added to each code and its share, 128·Σq, taken off at the end.
// Sums may wrap on the way: what is asked for fits. The second plane is free, as
// the loop waits for the codes to come from memory.
VNNI static inline int32_t fold(__m512i hi, __m512i lo, uint32_t offset) {
	__m512i sum = _mm512_add_epi32(_mm512_slli_epi32(hi, 7), lo);
	return (int32_t)((uint32_t)_mm512_reduce_add_epi32(sum) - offset);
}

VNNI static inline __m512i half(const int8_t *p) { return _mm512_zextsi256_si512(_mm256_loadu_si256((const __m256i *)p)); }

// ROW adds what 64 codes at p (the last time 32, with zeros in the query behind
// them) give to the sums of one row.
#define ROW(hi, lo, load) \
	do { \
		__m512i c = _mm512_xor_si512(load, flip); \
		hi = _mm512_dpbusd_epi32(hi, c, qh); \
		lo = _mm512_dpbusd_epi32(lo, c, ql); \
	} while (0)

VNNI static void dots_vnni(int32_t *out, const int8_t *codes, const int16_t *query, long rows, long width) {
	// A row of 32·odd ends with half a step: its other half is zero in the query.
	int8_t high[WIDEST + 32] __attribute__((aligned(64)));
	int8_t low[WIDEST + 32] __attribute__((aligned(64)));
	int32_t total = 0;
	for (long j = 0; j < width; j++) {
		high[j] = (int8_t)((query[j] + 64) >> 7);
		low[j] = (int8_t)(query[j] - 128 * high[j]);
		total += query[j];
	}
	for (long j = width; j < width + 32; j++) high[j] = low[j] = 0;
	const uint32_t offset = 128u * (uint32_t)total;
	const __m512i flip = _mm512_set1_epi8((char)0x80);
	const long whole = width / 64 * 64;

	long i = 0;
	for (; i + 4 <= rows; i += 4) {
		const int8_t *p = codes + i * width;
		const int8_t *p1 = p + width, *p2 = p1 + width, *p3 = p2 + width;
		__m512i zero = _mm512_setzero_si512();
		__m512i h0 = zero, h1 = zero, h2 = zero, h3 = zero, l0 = zero, l1 = zero, l2 = zero, l3 = zero;
		for (long j = 0; j < whole; j += 64) {
			__m512i qh = _mm512_load_si512(high + j), ql = _mm512_load_si512(low + j);
			ROW(h0, l0, _mm512_loadu_si512(p + j));
			ROW(h1, l1, _mm512_loadu_si512(p1 + j));
			ROW(h2, l2, _mm512_loadu_si512(p2 + j));
			ROW(h3, l3, _mm512_loadu_si512(p3 + j));
		}
		if (whole < width) {
			__m512i qh = _mm512_load_si512(high + whole), ql = _mm512_load_si512(low + whole);
			ROW(h0, l0, half(p + whole));
			ROW(h1, l1, half(p1 + whole));
			ROW(h2, l2, half(p2 + whole));
			ROW(h3, l3, half(p3 + whole));
		}
		out[i] = fold(h0, l0, offset);
		out[i + 1] = fold(h1, l1, offset);
		out[i + 2] = fold(h2, l2, offset);
		out[i + 3] = fold(h3, l3, offset);
	}
	for (; i < rows; i++) {
		const int8_t *p = codes + i * width;
		__m512i h = _mm512_setzero_si512(), l = h;
		for (long j = 0; j < whole; j += 64) {
			__m512i qh = _mm512_load_si512(high + j), ql = _mm512_load_si512(low + j);
			ROW(h, l, _mm512_loadu_si512(p + j));
		}
		if (whole < width) {
			__m512i qh = _mm512_load_si512(high + whole), ql = _mm512_load_si512(low + whole);
			ROW(h, l, half(p + whole));
		}
		out[i] = fold(h, l, offset);
	}
}

#define AVX2 __attribute__((target("avx2")))

AVX2 static inline __m256i pairs(__m256i sum, const int8_t *codes, const int16_t *query) {
	__m256i c = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)codes));
	return _mm256_add_epi32(sum, _mm256_madd_epi16(c, _mm256_loadu_si256((const __m256i *)query)));
}

AVX2 static void dots_avx2(int32_t *out, const int8_t *codes, const int16_t *query, long rows, long width) {
	for (long i = 0; i < rows; i++, codes += width) {
		__m256i a = _mm256_setzero_si256(), b = a;
		for (long j = 0; j < width; j += 32) {
			a = pairs(a, codes + j, query + j);
			b = pairs(b, codes + j + 16, query + j + 16);
		}
		a = _mm256_add_epi32(a, b);
		__m128i s = _mm_add_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
		s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
		s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
		out[i] = _mm_cvtsi128_si32(s);
	}
}

#endif

#ifdef SCAN_ARM

static void dots_neon(int32_t *out, const int8_t *codes, const int16_t *query, long rows, long width) {
	for (long i = 0; i < rows; i++, codes += width) {
		int32x4_t a = vdupq_n_s32(0), b = a, c = a, d = a;
		for (long j = 0; j < width; j += 16) {
			int8x16_t x = vld1q_s8(codes + j);
			int16x8_t lo = vmovl_s8(vget_low_s8(x)), hi = vmovl_s8(vget_high_s8(x));
			int16x8_t q = vld1q_s16(query + j), r = vld1q_s16(query + j + 8);
			a = vmlal_s16(a, vget_low_s16(lo), vget_low_s16(q));
			b = vmlal_s16(b, vget_high_s16(lo), vget_high_s16(q));
			c = vmlal_s16(c, vget_low_s16(hi), vget_low_s16(r));
			d = vmlal_s16(d, vget_high_s16(hi), vget_high_s16(r));
		}
		out[i] = vaddvq_s32(vaddq_s32(vaddq_s32(a, b), vaddq_s32(c, d)));
	}
}

#endif

int scan_can(int kernel) {
	switch (kernel) {
#ifdef SCAN_X86
	case SCAN_AVX512VNNI:
		return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
			__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
	case SCAN_AVX2:
		return __builtin_cpu_supports("avx2") != 0;
#endif
#ifdef SCAN_ARM
	case SCAN_NEON:
		return 1;
#endif
	case SCAN_PLAIN:
		return 1;
	}
	return 0;
}

void scan_dots(int kernel, int32_t *out, const int8_t *codes, const int16_t *query, long rows, long width) {
	switch (kernel) {
#ifdef SCAN_X86
	case SCAN_AVX512VNNI:
		dots_vnni(out, codes, query, rows, width);
		return;
	case SCAN_AVX2:
		dots_avx2(out, codes, query, rows, width);
		return;
#endif
#ifdef SCAN_ARM
	case SCAN_NEON:
		dots_neon(out, codes, query, rows, width);
		return;
#endif
	}
	dots_plain(out, codes, query, rows, width);
}
