#ifndef SCAN_KERNEL_H
#define SCAN_KERNEL_H

#include <stdint.h>

enum { SCAN_AVX512VNNI, SCAN_AVX2, SCAN_NEON, SCAN_PLAIN };

// scan_can says whether this build has the kernel and this processor can run it.
int scan_can(int kernel);

// scan_dots sets out[i], for i < rows, to the sum over j < width of
// codes[i*width+j]*query[j]. width is a multiple of 32, at most 16,384; codes are
// within -127..127, query within -16256..16256, sums within 32 bits.
void scan_dots(int kernel, int32_t *out, const int8_t *codes, const int16_t *query, long rows, long width);

#endif
