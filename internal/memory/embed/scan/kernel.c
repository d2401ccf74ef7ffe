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

enum { GROUP = 16, STEP = 16, STEP_BYTES = GROUP * STEP / 4 };

static void sift_plain(int32_t *restrict out, const uint8_t *restrict plane, const int8_t *restrict query, long groups, long width) {
	for (long g = 0; g < groups; g++, out += GROUP) {
		int32_t sum[STEP_BYTES] = {0};
		for (long j = 0; j < width; j += STEP, plane += STEP_BYTES) {
			int8_t q[4][STEP_BYTES];
			for (int i = 0; i < STEP_BYTES; i += 4)
				for (int k = 0; k < 4; k++) memcpy(q[k] + i, query + j + 4 * k, 4);
			// 4*3*127 fits 16 bits.
			for (int i = 0; i < STEP_BYTES; i++)
				sum[i] += (int16_t)((plane[i] & 3) * q[0][i] + (plane[i] >> 2 & 3) * q[1][i] + (plane[i] >> 4 & 3) * q[2][i] + (plane[i] >> 6) * q[3][i]);
		}
		for (int r = 0; r < GROUP; r++) out[r] = 4 * out[r] + sum[4 * r] + sum[4 * r + 1] + sum[4 * r + 2] + sum[4 * r + 3];
	}
}

static long pick_plain(uint16_t *restrict rows, int64_t *restrict sums, const int32_t *restrict products, const scan_shadow *restrict shadows, long n, const scan_reach *restrict reach) {
	long count = 0;
	int64_t first = 0, second = 0;
	for (long i = 0; i < n; i++) {
		float x = (float)(2 * products[i] - reach->shift) * (reach->scale * shadows[i].unit);
		int64_t c = (int32_t)(x * SCAN_UNIT);
		first += c;
		second += c * c;
		rows[count] = (uint16_t)i;
		count += x >= reach->least - shadows[i].tan * reach->tan;
	}
	sums[0] = first;
	sums[1] = second;
	return count;
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

// AHEAD is how far in front of the work memory is asked for. The processor does so
// itself only up to the end of a page, and stops there each time: with two pages
// more a pass over memory takes half as long. What is asked for behind the end of a
// block is not there, and does no harm.
enum { AHEAD = 8192 };

static inline void ahead(const uint8_t *at, long bytes) {
	for (long i = 0; i < bytes; i += 64) _mm_prefetch((const char *)at + AHEAD + i, _MM_HINT_T0);
}

#define VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))

// One instruction multiplies 64 numbers of 16 rows with four of the query, 16 times
// over, and adds them up in fours: row r has lane r, and no sum has to be taken
// across lanes. Numbers are left where they stand in their byte, as multiples of 1,
// 4, 16 and 64, and each place has a sum of its own, divided in the end.
VNNI static inline void step(__m512i sums[4], const uint8_t *plane, const int8_t *query) {
	__m512i c = _mm512_loadu_si512(plane);
	for (int k = 0; k < 4; k++)
		sums[k] = _mm512_dpbusd_epi32(sums[k], _mm512_and_si512(c, _mm512_set1_epi8((char)(3 << 2 * k))), _mm512_set1_epi32(four(query + 4 * k)));
}

VNNI static void sift_vnni(int32_t *out, const uint8_t *plane, const int8_t *query, long groups, long width) {
	const __m512i zero = _mm512_setzero_si512();
	for (long g = 0; g < groups; g++, out += GROUP) {
		// Two steps have sums of their own: the next instruction would have to wait
		// for the one before on the same sum.
		__m512i a[4] = {zero, zero, zero, zero}, b[4] = {zero, zero, zero, zero};
		__m512i sum = _mm512_slli_epi32(_mm512_loadu_si512(out), 2);
		for (long j = 0; j < width; j += 2 * STEP, plane += 2 * STEP_BYTES) {
			ahead(plane, 2 * STEP_BYTES);
			step(a, plane, query + j);
			step(b, plane + STEP_BYTES, query + j + STEP);
		}
		for (int k = 0; k < 4; k++) sum = _mm512_add_epi32(sum, _mm512_srai_epi32(_mm512_add_epi32(a[k], b[k]), 2 * k));
		_mm512_storeu_si512(out, sum);
	}
}

// Shadows of 16 rows stand in two registers, unit and tan in turn.
VNNI static long pick_avx512(uint16_t *rows, int64_t *sums, const int32_t *products, const scan_shadow *shadows, long n, const scan_reach *reach) {
	const __m512i units = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
	const __m512i tans = _mm512_add_epi32(units, _mm512_set1_epi32(1));
	const __m512i shift = _mm512_set1_epi32(reach->shift);
	const __m512 scale = _mm512_set1_ps(reach->scale), least = _mm512_set1_ps(reach->least), tan = _mm512_set1_ps(reach->tan);
	__m512i first = _mm512_setzero_si512(), second = first;
	long count = 0;
	for (long i = 0; i < n; i += GROUP) {
		long left = n - i < GROUP ? n - i : GROUP;
		uint32_t halves = (uint32_t)((1ull << 2 * left) - 1);
		__mmask16 there = (__mmask16)((1u << left) - 1);
		__m512 a = _mm512_maskz_loadu_ps((__mmask16)halves, shadows + i), b = _mm512_maskz_loadu_ps((__mmask16)(halves >> 16), shadows + i + GROUP / 2);
		__m512i d = _mm512_maskz_loadu_epi32(there, products + i);
		__m512 x = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_sub_epi32(_mm512_add_epi32(d, d), shift)), _mm512_mul_ps(scale, _mm512_permutex2var_ps(a, units, b)));
		// Lanes behind the last row have a unit of 0 and count for nothing.
		__m512i c = _mm512_cvttps_epi32(_mm512_mul_ps(x, _mm512_set1_ps(SCAN_UNIT))), odd = _mm512_srai_epi64(c, 32);
		first = _mm512_add_epi64(first, _mm512_add_epi64(_mm512_srai_epi64(_mm512_slli_epi64(c, 32), 32), odd));
		second = _mm512_add_epi64(second, _mm512_add_epi64(_mm512_mul_epi32(c, c), _mm512_mul_epi32(odd, odd)));
		uint32_t passed = _mm512_mask_cmp_ps_mask(there, x, _mm512_sub_ps(least, _mm512_mul_ps(_mm512_permutex2var_ps(a, tans, b), tan)), _CMP_GE_OQ);
		for (; passed; passed &= passed - 1) rows[count++] = (uint16_t)(i + __builtin_ctz(passed));
	}
	sums[0] = _mm512_reduce_add_epi64(first);
	sums[1] = _mm512_reduce_add_epi64(second);
	return count;
}

#define AVX2 __attribute__((target("avx2")))

// pairsOf multiplies 32 bytes of a plane with 16 numbers of the query and adds them up
// in pairs, at most 8*3*127 = 3,048, two of which fit 16 bits.
AVX2 static inline __m256i pairsOf(const uint8_t *plane, const __m256i q[4]) {
	const __m256i mask = _mm256_set1_epi8(3);
	__m256i c = _mm256_loadu_si256((const __m256i *)plane);
	return _mm256_add_epi16(
		_mm256_add_epi16(_mm256_maddubs_epi16(_mm256_and_si256(c, mask), q[0]), _mm256_maddubs_epi16(_mm256_and_si256(_mm256_srli_epi16(c, 2), mask), q[1])),
		_mm256_add_epi16(_mm256_maddubs_epi16(_mm256_and_si256(_mm256_srli_epi16(c, 4), mask), q[2]), _mm256_maddubs_epi16(_mm256_and_si256(_mm256_srli_epi16(c, 6), mask), q[3])));
}

AVX2 static void sift_avx2(int32_t *out, const uint8_t *plane, const int8_t *query, long groups, long width) {
	const __m256i one = _mm256_set1_epi16(1);
	for (long g = 0; g < groups; g++, out += GROUP) {
		__m256i *half = (__m256i *)out, *other = (__m256i *)(out + GROUP / 2);
		__m256i a = _mm256_slli_epi32(_mm256_loadu_si256(half), 2), b = _mm256_slli_epi32(_mm256_loadu_si256(other), 2);
		for (long j = 0; j < width; j += 2 * STEP) {
			ahead(plane, 2 * STEP_BYTES);
			__m256i x = _mm256_setzero_si256(), y = x;
			for (int i = 0; i < 2 * STEP; i += STEP, plane += STEP_BYTES) {
				__m256i q[4];
				for (int k = 0; k < 4; k++) q[k] = _mm256_set1_epi32(four(query + j + i + 4 * k));
				x = _mm256_add_epi16(x, pairsOf(plane, q));
				y = _mm256_add_epi16(y, pairsOf(plane + STEP_BYTES / 2, q));
			}
			a = _mm256_add_epi32(a, _mm256_madd_epi16(x, one));
			b = _mm256_add_epi32(b, _mm256_madd_epi16(y, one));
		}
		_mm256_storeu_si256(half, a);
		_mm256_storeu_si256(other, b);
	}
}

AVX2 static inline __m256i pairs(__m256i sum, const int8_t *codes, const int16_t *query) {
	__m256i c = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)codes));
	return _mm256_add_epi32(sum, _mm256_madd_epi16(c, _mm256_loadu_si256((const __m256i *)query)));
}

enum { NEXT = 8 };

static inline void fetch(const int8_t *row, long width) {
	for (long j = 0; j < width; j += 64) _mm_prefetch((const char *)row + j, _MM_HINT_T0);
}

AVX2 static void dots_avx2(int32_t *out, const int8_t *codes, const uint16_t *rows, const int16_t *query, long n, long width) {
	// Rows are far apart: ask for a later one before working on this one.
	for (long i = 0; i < n && i < NEXT; i++) fetch(codes + rows[i] * width, width);
	for (long i = 0; i < n; i++) {
		const int8_t *row = codes + rows[i] * width;
		if (i + NEXT < n) fetch(codes + rows[i + NEXT] * width, width);
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

void scan_sift(int kernel, int32_t *out, const uint8_t *plane, const int8_t *query, long groups, long width) {
#ifdef SCAN_X86
	if (kernel == SCAN_AVX512VNNI) {
		sift_vnni(out, plane, query, groups, width);
		return;
	}
	if (kernel == SCAN_AVX2) {
		sift_avx2(out, plane, query, groups, width);
		return;
	}
#endif
	sift_plain(out, plane, query, groups, width);
}

long scan_pick(int kernel, uint16_t *rows, int64_t *sums, const int32_t *products, const scan_shadow *shadows, long n, const scan_reach *reach) {
#ifdef SCAN_X86
	if (kernel == SCAN_AVX512VNNI) return pick_avx512(rows, sums, products, shadows, n, reach);
#endif
	return pick_plain(rows, sums, products, shadows, n, reach);
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
