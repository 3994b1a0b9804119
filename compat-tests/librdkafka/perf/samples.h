/* Latencies: every single one is kept, so percentiles are exact. One thread writes. */
#ifndef SAMPLES_H
#define SAMPLES_H

#include <stdint.h>

struct samples {
  uint32_t *microseconds;
  int64_t count;
  int64_t capacity;
};

void samples_reserve(struct samples *samples, int64_t capacity);
void samples_add(struct samples *samples, int64_t microseconds);

/* Prints {"mean":...,"p50":...,"p90":...,"p99":...,"p999":...,"max":...} in milliseconds, and sorts
 * the samples for that; null if there are none. */
void samples_print(struct samples *samples);

/* Microseconds of a clock that never goes back. */
int64_t monotonic_us(void);

#endif
