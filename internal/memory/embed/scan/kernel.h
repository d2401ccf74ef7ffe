#ifndef SCAN_KERNEL_H
#define SCAN_KERNEL_H

#include <stdint.h>

enum { SCAN_AVX512VNNI, SCAN_AVX2, SCAN_PLAIN };

// scan_can says whether this build has the kernel and this processor can run it.
int scan_can(int kernel);

// scan_sift sets out[16*g+r], for g < groups and r < 16, to the sum over j < width
// of the nibble of number j of row r of group g, 0..15, times query[j]. A group is
// 8*width bytes: for every 8 numbers 64, of which row r has those from 4*r, with
// numbers 0..3 in their low halves and 4..7 in their high ones. width is a multiple
// of 32, at most 16,384; query is within -127..127.
void scan_sift(int kernel, int32_t *out, const uint8_t *nibbles, const int8_t *query, long groups, long width);

// scan_dots sets out[i], for i < n, to the sum over j < width of
// codes[rows[i]*width+j]*query[j]. width is a multiple of 32, at most 16,384; codes
// are within -127..127, sums within 32 bits.
void scan_dots(int kernel, int32_t *out, const int8_t *codes, const uint16_t *rows, const int16_t *query, long n, long width);

#endif
