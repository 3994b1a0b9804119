#include <string.h>

#include "producer.h"

static bool has_leaders(rd_kafka_t *client, const struct options *options) {
  const struct rd_kafka_metadata *metadata;
  rd_kafka_topic_t *topic = rd_kafka_topic_new(client, options->topic, NULL);
  rd_kafka_resp_err_t error = rd_kafka_metadata(client, 0, topic, &metadata, 5000);
  rd_kafka_topic_destroy(topic);
  if (error) fail("metadata: %s", rd_kafka_err2str(error));
  const struct rd_kafka_metadata_topic *found = &metadata->topics[0];
  bool led = metadata->topic_cnt == 1 && !found->err && found->partition_cnt == options->partitions;
  for (int index = 0; led && index < found->partition_cnt; index++)
    led = found->partitions[index].leader >= 0;
  rd_kafka_metadata_destroy(metadata);
  return led;
}

void create_topic(const struct options *options) {
  char reason[512];
  rd_kafka_t *client = new_client(RD_KAFKA_PRODUCER, new_configuration(options), options);
  rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(
      options->topic, options->partitions, options->replication, reason, sizeof reason);
  if (topic == NULL) fail("%s", reason);
  rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
  rd_kafka_CreateTopics(client, &topic, 1, NULL, queue);
  rd_kafka_event_t *event = rd_kafka_queue_poll(queue, options->idle_seconds * 1000);
  if (event == NULL) fail("creating the topic took too long");
  if (rd_kafka_event_error(event)) fail("%s", rd_kafka_event_error_string(event));
  size_t count;
  const rd_kafka_topic_result_t **results =
      rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
  if (rd_kafka_topic_result_error(results[0]))
    fail("creating the topic: %s", rd_kafka_topic_result_error_string(results[0]));
  rd_kafka_event_destroy(event);
  rd_kafka_NewTopic_destroy(topic);

  int64_t deadline_us = monotonic_us() + (int64_t)options->idle_seconds * 1000000;
  while (!has_leaders(client, options)) {
    if (monotonic_us() > deadline_us) fail("the partitions got no leaders");
    /* Paces the question; nothing else arrives on this queue. */
    rd_kafka_queue_poll(queue, 20);
  }
  rd_kafka_queue_destroy(queue);
  rd_kafka_destroy(client);
}
