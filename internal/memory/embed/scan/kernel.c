//go:build cgo

#include "kernel.h"

#include <string.h>

// Instruction sets are asked for by function, not by compiler flag, so that one
// build runs on every processor of its architecture and picks at run time. The
// plain loops are written so that a compiler makes vector code of them (NEON on
// arm64).
#if defined(__x86_64__) && (defined(__clang__) || __GNUC__ >= 9)
#define SCAN_X86 1
#include <immintrin.h>
#endif

enum { GROUP = 16, STEP = 8, STEP_BYTES = GROUP * STEP / 2 };

static void sift_plain(int32_t *restrict out, const uint8_t *restrict nibbles, const int8_t *restrict query, long groups, long width) {
	for (long g = 0; g < groups; g++, out += GROUP) {
		int32_t sum[STEP_BYTES] = {0};
		for (long j = 0; j < width; j += STEP, nibbles += STEP_BYTES) {
			int8_t low[STEP_BYTES], high[STEP_BYTES];
			for (int i = 0; i < STEP_BYTES; i += 4) {
				memcpy(low + i, query + j, 4);
				memcpy(high + i, query + j + 4, 4);
			}
			// 2*15*127 fits 16 bits.
			for (int i = 0; i < STEP_BYTES; i++)
				sum[i] += (int16_t)((int16_t)(nibbles[i] & 15) * low[i] + (int16_t)(nibbles[i] >> 4) * high[i]);
		}
		for (int r = 0; r < GROUP; r++) out[r] = sum[4 * r] + sum[4 * r + 1] + sum[4 * r + 2] + sum[4 * r + 3];
	}
}

static void dots_plain(int32_t *out, const int8_t *codes, const uint16_t *rows, const int16_t *query, long n, long width) {
	for (long i = 0; i < n; i++) {
		const int8_t *row = codes + rows[i] * width;
		int32_t sum = 0;
		for (long j = 0; j < width; j++) sum += (int32_t)row[j] * query[j];
		out[i] = sum;
	}
}

#ifdef SCAN_X86

static inline int32_t four(const int8_t *query) {
	int32_t q;
	memcpy(&q, query, sizeof q);
	return q;
}

#define VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))

// One instruction multiplies 64 nibbles with four numbers of the query, 16 times
// over, and adds them up in fours: row r has lane r, and no sum has to be taken
// across lanes. Two steps and two halves make four sums, since the next
// instruction would have to wait for the one before on the same sum.
VNNI static inline void step(__m512i *low, __m512i *high, const uint8_t *nibbles, const int8_t *query) {
	const __m512i mask = _mm512_set1_epi8(15);
	__m512i c = _mm512_loadu_si512(nibbles);
	*low = _mm512_dpbusd_epi32(*low, _mm512_and_si512(c, mask), _mm512_set1_epi32(four(query)));
	*high = _mm512_dpbusd_epi32(*high, _mm512_and_si512(_mm512_srli_epi16(c, 4), mask), _mm512_set1_epi32(four(query + 4)));
}

VNNI static void sift_vnni(int32_t *out, const uint8_t *nibbles, const int8_t *query, long groups, long width) {
	for (long g = 0; g < groups; g++, out += GROUP) {
		__m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;
		for (long j = 0; j < width; j += 2 * STEP, nibbles += 2 * STEP_BYTES) {
			step(&a, &b, nibbles, query + j);
			step(&c, &d, nibbles + STEP_BYTES, query + j + STEP);
		}
		_mm512_storeu_si512(out, _mm512_add_epi32(_mm512_add_epi32(a, b), _mm512_add_epi32(c, d)));
	}
}

#define AVX2 __attribute__((target("avx2")))

// quads multiplies 32 bytes of nibbles with the query and adds them up in pairs of
// at most 4*15*127 = 7,620, four of which fit 16 bits.
AVX2 static inline __m256i quads(const uint8_t *nibbles, __m256i low, __m256i high) {
	const __m256i mask = _mm256_set1_epi8(15);
	__m256i c = _mm256_loadu_si256((const __m256i *)nibbles);
	return _mm256_add_epi16(_mm256_maddubs_epi16(_mm256_and_si256(c, mask), low),
		_mm256_maddubs_epi16(_mm256_and_si256(_mm256_srli_epi16(c, 4), mask), high));
}

AVX2 static void sift_avx2(int32_t *out, const uint8_t *nibbles, const int8_t *query, long groups, long width) {
	const __m256i one = _mm256_set1_epi16(1);
	for (long g = 0; g < groups; g++, out += GROUP) {
		__m256i a = _mm256_setzero_si256(), b = a;
		for (long j = 0; j < width; j += 4 * STEP) {
			__m256i x = _mm256_setzero_si256(), y = x;
			for (int i = 0; i < 4 * STEP; i += STEP, nibbles += STEP_BYTES) {
				__m256i low = _mm256_set1_epi32(four(query + j + i)), high = _mm256_set1_epi32(four(query + j + i + 4));
				x = _mm256_add_epi16(x, quads(nibbles, low, high));
				y = _mm256_add_epi16(y, quads(nibbles + STEP_BYTES / 2, low, high));
			}
			a = _mm256_add_epi32(a, _mm256_madd_epi16(x, one));
			b = _mm256_add_epi32(b, _mm256_madd_epi16(y, one));
		}
		_mm256_storeu_si256((__m256i *)out, a);
		_mm256_storeu_si256((__m256i *)(out + GROUP / 2), b);
	}
}

AVX2 static inline __m256i pairs(__m256i sum, const int8_t *codes, const int16_t *query) {
	__m256i c = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)codes));
	return _mm256_add_epi32(sum, _mm256_madd_epi16(c, _mm256_loadu_si256((const __m256i *)query)));
}

AVX2 static void dots_avx2(int32_t *out, const int8_t *codes, const uint16_t *rows, const int16_t *query, long n, long width) {
	for (long i = 0; i < n; i++) {
		const int8_t *row = codes + rows[i] * width;
		// Rows are far apart: ask for the one after next before working on this one.
		if (i + 2 < n)
			for (long j = 0; j < width; j += 64) _mm_prefetch((const char *)codes + rows[i + 2] * width + j, _MM_HINT_T0);
		__m256i a = _mm256_setzero_si256(), b = a;
		for (long j = 0; j < width; j += 32) {
			a = pairs(a, row + j, query + j);
			b = pairs(b, row + j + 16, query + j + 16);
		}
		a = _mm256_add_epi32(a, b);
		__m128i s = _mm_add_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
		s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
		s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
		out[i] = _mm_cvtsi128_si32(s);
	}
}

#endif

int scan_can(int kernel) {
	switch (kernel) {
#ifdef SCAN_X86
	case SCAN_AVX512VNNI:
		return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
			__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
	case SCAN_AVX2:
		return __builtin_cpu_supports("avx2") != 0;
#endif
	case SCAN_PLAIN:
		return 1;
	}
	return 0;
}

void scan_sift(int kernel, int32_t *out, const uint8_t *nibbles, const int8_t *query, long groups, long width) {
#ifdef SCAN_X86
	if (kernel == SCAN_AVX512VNNI) {
		sift_vnni(out, nibbles, query, groups, width);
		return;
	}
	if (kernel == SCAN_AVX2) {
		sift_avx2(out, nibbles, query, groups, width);
		return;
	}
#endif
	sift_plain(out, nibbles, query, groups, width);
}

void scan_dots(int kernel, int32_t *out, const int8_t *codes, const uint16_t *rows, const int16_t *query, long n, long width) {
#ifdef SCAN_X86
	if (kernel != SCAN_PLAIN) {
		dots_avx2(out, codes, rows, query, n, width);
		return;
	}
#endif
	dots_plain(out, codes, rows, query, n, width);
}
