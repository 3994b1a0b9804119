/* The command line of load: what is asked for, with every default in one place. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stdint.h>

enum { PROPERTIES_MAX = 32 };

struct options {
  const char *mode;
  const char *bootstrap;
  const char *topic;
  const char *acks;
  const char *linger_ms;
  const char *compression;
  const char *group; /* NULL: partitions are assigned without a group */
  int64_t records;
  int64_t warmup; /* records produced before the clock starts, not counted */
  double rate;    /* records per second; 0: as fast as possible */
  int record_bytes;
  int batch_bytes;
  int batch_records;
  int queue_records;
  int partitions;
  int replication;
  int idle_seconds; /* give up when nothing happens for so long */
  bool idempotence;
  bool create;
  bool text; /* records that compress like text instead of random bytes */
  const char *properties[PROPERTIES_MAX]; /* NAME=VALUE, given to librdkafka as they are */
  int property_count;
};

/* Exits with a usage message if the command line is wrong. */
void parse_options(int count, char **arguments, struct options *options);

/* All of these exit if a property is bad. */
rd_kafka_conf_t *new_configuration(const struct options *options);
void set_property(rd_kafka_conf_t *configuration, const char *name, const char *value);

/* Creates the client; the -X properties are set last, so they win over every other setting. */
rd_kafka_t *new_client(rd_kafka_type_t type, rd_kafka_conf_t *configuration,
                       const struct options *options);

/* Prints "load: ..." on standard error and exits with 1. */
void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#endif
