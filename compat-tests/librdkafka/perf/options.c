#include "options.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: load produce|consume|end-to-end BOOTSTRAP TOPIC [option...]\n"
    "  --records N        records to produce or to consume (default 1000000)\n"
    "  --size BYTES       size of a record's value (default 100)\n"
    "  --partitions N     partitions 0 to N-1 are used (default 1)\n"
    "  --rate R           records per second; 0 is as fast as possible (default 0)\n"
    "  --warmup N         records produced before the clock starts (default 0)\n"
    "  --acks 0|1|all     (default all)\n"
    "  --linger MS        (default 5)\n"
    "  --batch-bytes N    largest batch (default 1000000)\n"
    "  --batch-records N  most records of a batch (default 10000)\n"
    "  --queue-records N  records that may wait or be in flight (default 100000)\n"
    "  --compression C    none, gzip, snappy, lz4 or zstd (default none)\n"
    "  --idempotence      enable.idempotence\n"
    "  --text             records that compress like text; otherwise they are random bytes\n"
    "  --create           create the topic, with --partitions and --replication N (default 1)\n"
    "  --group G          consume as a member of a group (default: no group)\n"
    "  --idle SECONDS     fail when nothing happens for so long (default 30)\n"
    "  -X NAME=VALUE      any further property of librdkafka\n";

enum { RECORDS = 256, SIZE, PARTITIONS, RATE, WARMUP, ACKS, LINGER, BATCH_BYTES, BATCH_RECORDS,
       QUEUE_RECORDS, COMPRESSION, IDEMPOTENCE, TEXT, CREATE, REPLICATION, GROUP, IDLE };

static const struct option names[] = {
    {"records", required_argument, NULL, RECORDS},
    {"size", required_argument, NULL, SIZE},
    {"partitions", required_argument, NULL, PARTITIONS},
    {"rate", required_argument, NULL, RATE},
    {"warmup", required_argument, NULL, WARMUP},
    {"acks", required_argument, NULL, ACKS},
    {"linger", required_argument, NULL, LINGER},
    {"batch-bytes", required_argument, NULL, BATCH_BYTES},
    {"batch-records", required_argument, NULL, BATCH_RECORDS},
    {"queue-records", required_argument, NULL, QUEUE_RECORDS},
    {"compression", required_argument, NULL, COMPRESSION},
    {"idempotence", no_argument, NULL, IDEMPOTENCE},
    {"text", no_argument, NULL, TEXT},
    {"create", no_argument, NULL, CREATE},
    {"replication", required_argument, NULL, REPLICATION},
    {"group", required_argument, NULL, GROUP},
    {"idle", required_argument, NULL, IDLE},
    {NULL, 0, NULL, 0},
};

void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("load: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(1);
}

static void fail_usage(void) {
  fputs(usage, stderr);
  exit(2);
}

static double number(const char *text, double minimum, double maximum) {
  char *end;
  double value = strtod(text, &end);
  if (end == text || *end != '\0' || value < minimum || value > maximum)
    fail("%s is not a number from %.0f to %.0f", text, minimum, maximum);
  return value;
}

static void take_option(int option, const char *value, struct options *options) {
  switch (option) {
  case RECORDS: options->records = (int64_t)number(value, 1, 4e9); break;
  case SIZE: options->record_bytes = (int)number(value, 8, 1e8); break;
  case PARTITIONS: options->partitions = (int)number(value, 1, 100000); break;
  case RATE: options->rate = number(value, 0, 1e8); break;
  case WARMUP: options->warmup = (int64_t)number(value, 0, 4e9); break;
  case ACKS: options->acks = value; break;
  case LINGER: options->linger_ms = value; break;
  case BATCH_BYTES: options->batch_bytes = (int)number(value, 1, 2e9); break;
  case BATCH_RECORDS: options->batch_records = (int)number(value, 1, 1e6); break;
  case QUEUE_RECORDS: options->queue_records = (int)number(value, 1, 1e7); break;
  case COMPRESSION: options->compression = value; break;
  case IDEMPOTENCE: options->idempotence = true; break;
  case TEXT: options->text = true; break;
  case CREATE: options->create = true; break;
  case REPLICATION: options->replication = (int)number(value, 1, 100); break;
  case GROUP: options->group = value; break;
  case IDLE: options->idle_seconds = (int)number(value, 1, 3600); break;
  case 'X':
    if (options->property_count == PROPERTIES_MAX) fail("more than %d of -X", PROPERTIES_MAX);
    options->properties[options->property_count++] = value;
    break;
  default: fail_usage();
  }
}

void parse_options(int count, char **arguments, struct options *options) {
  *options = (struct options){
      .acks = "all",
      .linger_ms = "5",
      .compression = "none",
      .records = 1000000,
      .record_bytes = 100,
      .batch_bytes = 1000000,
      .batch_records = 10000,
      .queue_records = 100000,
      .partitions = 1,
      .replication = 1,
      .idle_seconds = 30,
  };
  int option;
  while ((option = getopt_long(count, arguments, "X:", names, NULL)) != -1)
    take_option(option, optarg, options);
  if (count - optind != 3) fail_usage();
  options->mode = arguments[optind];
  options->bootstrap = arguments[optind + 1];
  options->topic = arguments[optind + 2];
}

void set_property(rd_kafka_conf_t *configuration, const char *name, const char *value) {
  char reason[512];
  if (rd_kafka_conf_set(configuration, name, value, reason, sizeof reason) != RD_KAFKA_CONF_OK)
    fail("%s", reason);
}

rd_kafka_conf_t *new_configuration(const struct options *options) {
  rd_kafka_conf_t *configuration = rd_kafka_conf_new();
  set_property(configuration, "bootstrap.servers", options->bootstrap);
  set_property(configuration, "client.id", "load");
  return configuration;
}

rd_kafka_t *new_client(rd_kafka_type_t type, rd_kafka_conf_t *configuration,
                       const struct options *options) {
  for (int index = 0; index < options->property_count; index++) {
    char *name = strdup(options->properties[index]);
    char *separator = strchr(name, '=');
    if (separator == NULL) fail("-X %s has no =", name);
    *separator = '\0';
    set_property(configuration, name, separator + 1);
    free(name);
  }
  char reason[512];
  rd_kafka_t *client = rd_kafka_new(type, configuration, reason, sizeof reason);
  if (client == NULL) fail("%s", reason);
  return client;
}
