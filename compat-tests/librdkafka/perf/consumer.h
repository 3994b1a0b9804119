/* Consumes a number of records, from partitions of its own choice or as a member of a group. */
#ifndef CONSUMER_H
#define CONSUMER_H

#include "options.h"
#include "samples.h"

struct consumption {
  struct samples latencies; /* only if measure_latency */
  bool measure_latency;     /* values begin with the time of their sending */
  int64_t records;
  int64_t bytes;
  double first_record_seconds; /* from the start of the client to the first record */
  double seconds;              /* from the first record to the last one */
};

struct consumer;

/* Opens a consumer at the beginning of the topic, or, if at_end, at its end as it is now. */
struct consumer *open_consumer(const struct options *options, bool at_end);

/* Reads options->records records and closes the consumer. */
void consume(struct consumer *consumer, struct consumption *consumption);

#endif
