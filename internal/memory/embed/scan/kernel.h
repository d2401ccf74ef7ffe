#ifndef SCAN_KERNEL_H
#define SCAN_KERNEL_H

#include <stdint.h>

enum { SCAN_AVX512VNNI, SCAN_AVX2, SCAN_PLAIN };

// scan_can says whether this build has the kernel and this processor can run it.
int scan_can(int kernel);

// scan_sift sets out[16*g+r], for g < groups and r < 16, to four times itself and the
// sum over j < width of number j of row r of group g, 0..3, times query[j]. A group is
// 4*width bytes: for every 16 numbers 64, of which row r has those from 4*r, with
// numbers 0..3 in their lowest two bits, 4..7 in the next, and so on. width is a
// multiple of 32, at most 16,384; query is within -127..127.
void scan_sift(int kernel, int32_t *out, const uint8_t *plane, const int8_t *query, long groups, long width);

// SCAN_UNIT is how many parts of a cosine are counted.
#define SCAN_UNIT (1 << 18)

// scan_shadow is a shadow and scan_reach what a row has to reach, see vector.go.
typedef struct { float unit, tan; } scan_shadow;
typedef struct { float scale, least, tan; int32_t shift; } scan_reach;

// scan_pick takes the products of n rows with a query, as scan_sift makes them. With
// x = (2*product-shift)*scale*unit it writes those rows for which
// x >= least-tan(row)*tan to rows, in order, and returns how many; rows has room for
// n+1. sums are those of all x, cut to whole parts of SCAN_UNIT, and of their squares.
long scan_pick(int kernel, uint16_t *rows, int64_t *sums, const int32_t *products, const scan_shadow *shadows, long n, const scan_reach *reach);

// scan_dots sets out[i], for i < n, to the sum over j < width of
// codes[rows[i]*width+j]*query[j]. width is a multiple of 32, at most 16,384; codes
// are within -127..127, sums within 32 bits.
void scan_dots(int kernel, int32_t *out, const int8_t *codes, const uint16_t *rows, const int16_t *query, long n, long width);

#endif
