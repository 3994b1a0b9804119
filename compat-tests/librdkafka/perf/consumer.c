#include "consumer.h"

#include <stdlib.h>
#include <string.h>

enum { BATCH_MAX = 1000 };

struct consumer {
  const struct options *options;
  rd_kafka_t *client;
  rd_kafka_queue_t *queue;
  int64_t start_us;
};

static void assign(struct consumer *consumer, bool at_end) {
  const struct options *options = consumer->options;
  rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(options->partitions);
  for (int partition = 0; partition < options->partitions; partition++) {
    int64_t first = 0, next = 0;
    if (at_end) {
      /* Asked for now, so that nothing produced from here on is missed. */
      rd_kafka_resp_err_t error = rd_kafka_query_watermark_offsets(
          consumer->client, options->topic, partition, &first, &next, 10000);
      if (error) fail("offsets of partition %d: %s", partition, rd_kafka_err2str(error));
    }
    rd_kafka_topic_partition_list_add(list, options->topic, partition)->offset =
        at_end ? next : RD_KAFKA_OFFSET_BEGINNING;
  }
  rd_kafka_resp_err_t error = rd_kafka_assign(consumer->client, list);
  if (error) fail("assign: %s", rd_kafka_err2str(error));
  rd_kafka_topic_partition_list_destroy(list);
}

static void subscribe(struct consumer *consumer) {
  rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
  rd_kafka_topic_partition_list_add(list, consumer->options->topic, RD_KAFKA_PARTITION_UA);
  rd_kafka_resp_err_t error = rd_kafka_subscribe(consumer->client, list);
  if (error) fail("subscribe: %s", rd_kafka_err2str(error));
  rd_kafka_topic_partition_list_destroy(list);
}

struct consumer *open_consumer(const struct options *options, bool at_end) {
  struct consumer *consumer = calloc(1, sizeof *consumer);
  if (consumer == NULL) fail("no memory");
  consumer->options = options;
  consumer->start_us = monotonic_us();
  rd_kafka_conf_t *configuration = new_configuration(options);
  /* librdkafka wants a group id even where no group is used. */
  set_property(configuration, "group.id", options->group ? options->group : "load");
  set_property(configuration, "enable.auto.commit", options->group ? "true" : "false");
  set_property(configuration, "auto.offset.reset", "earliest");
  /* With the defaults librdkafka pauses for up to a second whenever it is ahead of its reader, and
   * that pause would be measured instead of the broker. */
  set_property(configuration, "queued.min.messages", "1000000");
  set_property(configuration, "queued.max.messages.kbytes", "262144");
  consumer->client = new_client(RD_KAFKA_CONSUMER, configuration, options);
  rd_kafka_poll_set_consumer(consumer->client);
  consumer->queue = rd_kafka_queue_get_consumer(consumer->client);
  if (options->group && !at_end)
    subscribe(consumer);
  else
    assign(consumer, at_end);
  return consumer;
}

static void take(struct consumption *consumption, const rd_kafka_message_t *message,
                 int64_t now_us) {
  if (message->err) fail("consuming: %s", rd_kafka_message_errstr(message));
  consumption->records++;
  consumption->bytes += (int64_t)message->len;
  if (consumption->measure_latency) {
    int64_t sent_us;
    if (message->len < sizeof sent_us) fail("a record without the time of its sending");
    memcpy(&sent_us, message->payload, sizeof sent_us);
    samples_add(&consumption->latencies, now_us - sent_us);
  }
}

void consume(struct consumer *consumer, struct consumption *consumption) {
  const struct options *options = consumer->options;
  rd_kafka_message_t *messages[BATCH_MAX];
  int64_t first_us = 0, last_us = monotonic_us();
  if (consumption->measure_latency) samples_reserve(&consumption->latencies, options->records);
  while (consumption->records < options->records) {
    int64_t left = options->records - consumption->records;
    size_t wanted = left < BATCH_MAX ? (size_t)left : BATCH_MAX;
    /* Fills the whole array if it can within the timeout; a latency must not wait for that. */
    if (consumption->measure_latency) wanted = 1;
    ssize_t count = rd_kafka_consume_batch_queue(consumer->queue, 100, messages, wanted);
    if (count < 0) fail("consuming: %s", rd_kafka_err2str(rd_kafka_last_error()));
    int64_t now_us = monotonic_us();
    if (count == 0 && now_us - last_us > (int64_t)options->idle_seconds * 1000000)
      fail("nothing came for %d s after %lld records", options->idle_seconds,
           (long long)consumption->records);
    if (count == 0) continue;
    if (first_us == 0) first_us = now_us;
    last_us = now_us;
    for (ssize_t index = 0; index < count; index++) {
      take(consumption, messages[index], now_us);
      rd_kafka_message_destroy(messages[index]);
    }
  }
  consumption->first_record_seconds = (double)(first_us - consumer->start_us) / 1e6;
  consumption->seconds = (double)(last_us - first_us) / 1e6;
  rd_kafka_queue_destroy(consumer->queue);
  rd_kafka_consumer_close(consumer->client);
  rd_kafka_destroy(consumer->client);
  free(consumer);
}
