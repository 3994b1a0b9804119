#include "samples.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "options.h"

void samples_reserve(struct samples *samples, int64_t capacity) {
  samples->microseconds = malloc((size_t)capacity * sizeof *samples->microseconds);
  if (samples->microseconds == NULL) fail("no memory for %lld samples", (long long)capacity);
  samples->capacity = capacity;
  samples->count = 0;
}

void samples_add(struct samples *samples, int64_t microseconds) {
  if (samples->count == samples->capacity) fail("more samples than records");
  if (microseconds < 0) microseconds = 0;
  if (microseconds > UINT32_MAX) microseconds = UINT32_MAX;
  samples->microseconds[samples->count++] = (uint32_t)microseconds;
}

static int compare(const void *one, const void *other) {
  uint32_t left = *(const uint32_t *)one, right = *(const uint32_t *)other;
  return (left > right) - (left < right);
}

/* The smallest sample that at least this share of all samples does not exceed (nearest rank). */
static double percentile_ms(const struct samples *samples, double share) {
  int64_t rank = (int64_t)(share * (double)samples->count);
  if (rank >= samples->count) rank = samples->count - 1;
  return samples->microseconds[rank] / 1000.0;
}

void samples_print(struct samples *samples) {
  if (samples->count == 0) {
    printf("null");
    return;
  }
  qsort(samples->microseconds, (size_t)samples->count, sizeof *samples->microseconds, compare);
  double sum = 0;
  for (int64_t index = 0; index < samples->count; index++) sum += samples->microseconds[index];
  printf("{\"mean\":%.3f,\"p50\":%.3f,\"p90\":%.3f,\"p99\":%.3f,\"p999\":%.3f,\"max\":%.3f}",
         sum / (double)samples->count / 1000, percentile_ms(samples, 0.5),
         percentile_ms(samples, 0.9), percentile_ms(samples, 0.99), percentile_ms(samples, 0.999),
         percentile_ms(samples, 1));
}

int64_t monotonic_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}
