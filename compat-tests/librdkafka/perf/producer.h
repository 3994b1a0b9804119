/* Produces records as fast as possible or at a fixed rate and measures each confirmation. */
#ifndef PRODUCER_H
#define PRODUCER_H

#include "options.h"
#include "samples.h"

struct production {
  struct samples latencies;
  int64_t confirmed;
  int64_t failed;
  double seconds; /* from the first record to the last confirmation */
};

/* Every value begins with the time of its sending (8 bytes, monotonic_us of this machine). At a fixed
 * rate that is the time at which it was due: a broker that stalls cannot hide the delay of the
 * records that were held up behind it. */
void produce(const struct options *options, struct production *production);

/* Creates the topic and waits until each of its partitions has a leader. */
void create_topic(const struct options *options);

#endif
