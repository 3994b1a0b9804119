/* A load generator on librdkafka. It prints its result as one line of JSON on standard output;
 * "mb" are millions of bytes of record values. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "consumer.h"
#include "options.h"
#include "producer.h"

static void print_head(const struct options *options) {
  printf("{\"mode\":\"%s\",\"client\":\"librdkafka %s\",\"topic\":\"%s\",\"partitions\":%d",
         options->mode, rd_kafka_version_str(), options->topic, options->partitions);
}

static void print_producer(const struct options *options) {
  printf(",\"record_bytes\":%d,\"acks\":\"%s\",\"linger_ms\":%s,\"batch_bytes\":%d,"
         "\"batch_records\":%d,\"compression\":\"%s\",\"idempotence\":%s,\"payload\":\"%s\","
         "\"rate\":%.3f",
         options->record_bytes, options->acks, options->linger_ms, options->batch_bytes,
         options->batch_records, options->compression, options->idempotence ? "true" : "false",
         options->text ? "text" : "random", options->rate);
}

static void print_throughput(int64_t records, int64_t bytes, double seconds) {
  printf(",\"records\":%lld,\"seconds\":%.3f,\"records_per_second\":%.0f,\"mb_per_second\":%.3f",
         (long long)records, seconds, seconds > 0 ? (double)records / seconds : 0,
         seconds > 0 ? (double)bytes / 1e6 / seconds : 0);
}

static int run_produce(const struct options *options) {
  struct production production = {0};
  produce(options, &production);
  print_head(options);
  print_producer(options);
  print_throughput(production.confirmed, production.confirmed * options->record_bytes,
                   production.seconds);
  printf(",\"failed\":%lld,\"latency_ms\":", (long long)production.failed);
  samples_print(&production.latencies);
  printf("}\n");
  return production.failed > 0;
}

static int run_consume(const struct options *options) {
  struct consumption consumption = {0};
  consume(open_consumer(options, false), &consumption);
  print_head(options);
  print_throughput(consumption.records, consumption.bytes, consumption.seconds);
  printf(",\"first_record_seconds\":%.3f}\n", consumption.first_record_seconds);
  return 0;
}

struct reading {
  struct consumer *consumer;
  struct consumption consumption;
};

static void *read_all(void *argument) {
  struct reading *reading = argument;
  consume(reading->consumer, &reading->consumption);
  return NULL;
}

/* One process sends and receives, so one clock measures both ends. */
static int run_end_to_end(const struct options *options) {
  struct options counted = *options;
  counted.warmup = 0; /* the consumer would take those records for measured ones */
  struct reading reading = {.consumption = {.measure_latency = true}};
  reading.consumer = open_consumer(&counted, true);
  pthread_t reader;
  if (pthread_create(&reader, NULL, read_all, &reading) != 0) fail("no thread");
  struct production production = {0};
  produce(&counted, &production);
  if (production.failed > 0) fail("%lld records were refused", (long long)production.failed);
  pthread_join(reader, NULL);
  print_head(options);
  print_producer(options);
  print_throughput(reading.consumption.records, reading.consumption.bytes,
                   reading.consumption.seconds);
  printf(",\"latency_ms\":");
  samples_print(&production.latencies);
  printf(",\"end_to_end_ms\":");
  samples_print(&reading.consumption.latencies);
  printf("}\n");
  return 0;
}

int main(int count, char **arguments) {
  struct options options;
  parse_options(count, arguments, &options);
  if (options.create) create_topic(&options);
  if (strcmp(options.mode, "produce") == 0) return run_produce(&options);
  if (strcmp(options.mode, "consume") == 0) return run_consume(&options);
  if (strcmp(options.mode, "end-to-end") == 0) return run_end_to_end(&options);
  fail("unknown mode %s", options.mode);
}
