#include "producer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { POOL_BYTES = 1 << 20, POLL_EVERY = 64 };

struct run {
  const struct options *options;
  struct production *production;
  rd_kafka_t *client;
  rd_kafka_topic_t *topic;
  char *value;
  char *pool;
  int64_t sequence;
  bool counting; /* false while warming up */
  int64_t last_confirmation_us;
  atomic_bool finished;
};

/* Called by rd_kafka_poll() for every record; its opaque is the time of sending. */
static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
  (void)client;
  struct run *run = opaque;
  if (!run->counting) {
    if (message->err) fail("warming up: %s", rd_kafka_err2str(message->err));
    return;
  }
  run->last_confirmation_us = monotonic_us();
  if (message->err) {
    if (run->production->failed++ == 0)
      fprintf(stderr, "load: first failure: %s\n", rd_kafka_err2str(message->err));
    return;
  }
  run->production->confirmed++;
  samples_add(&run->production->latencies,
              run->last_confirmation_us - (int64_t)(intptr_t)message->_private);
}

/* Bytes to cut values from: no two neighbouring records are the same. */
static char *fill_pool(const struct options *options) {
  static const char *const words[] = {"order",  "customer", "2024-11-29", "amount", "shipped",
                                      "status", "12345678", "pending",    "euro",   "warehouse"};
  size_t bytes = POOL_BYTES + (size_t)options->record_bytes + 16;
  char *pool = malloc(bytes);
  if (pool == NULL) fail("no memory");
  uint64_t state = 0x9e3779b97f4a7c15; /* xorshift64, always from the same seed */
  for (size_t filled = 0; filled + 16 <= bytes;) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    if (options->text) {
      filled += (size_t)snprintf(pool + filled, 16, "%s ", words[state % 10]);
    } else {
      memcpy(pool + filled, &state, sizeof state);
      filled += sizeof state;
    }
  }
  return pool;
}

static void start_client(struct run *run) {
  const struct options *options = run->options;
  char number[32];
  rd_kafka_conf_t *configuration = new_configuration(options);
  set_property(configuration, "acks", options->acks);
  set_property(configuration, "linger.ms", options->linger_ms);
  set_property(configuration, "compression.codec", options->compression);
  set_property(configuration, "enable.idempotence", options->idempotence ? "true" : "false");
  snprintf(number, sizeof number, "%d", options->batch_bytes);
  set_property(configuration, "batch.size", number);
  snprintf(number, sizeof number, "%d", options->batch_records);
  set_property(configuration, "batch.num.messages", number);
  snprintf(number, sizeof number, "%d", options->queue_records);
  set_property(configuration, "queue.buffering.max.messages", number);
  snprintf(number, sizeof number, "%d", options->idle_seconds * 1000);
  set_property(configuration, "message.timeout.ms", number);
  rd_kafka_conf_set_dr_msg_cb(configuration, on_delivery);
  rd_kafka_conf_set_opaque(configuration, run);

  run->client = new_client(RD_KAFKA_PRODUCER, configuration, options);
  run->topic = rd_kafka_topic_new(run->client, options->topic, NULL);
  if (run->topic == NULL) fail("%s", rd_kafka_err2str(rd_kafka_last_error()));
}

/* False if the queue of the client is full. */
static bool send_record(struct run *run, int64_t due_us) {
  size_t bytes = (size_t)run->options->record_bytes;
  memcpy(run->value, &due_us, sizeof due_us);
  size_t start = (size_t)run->sequence * 131 % POOL_BYTES;
  memcpy(run->value + sizeof due_us, run->pool + start, bytes - sizeof due_us);
  int partition = (int)(run->sequence % run->options->partitions);
  if (rd_kafka_produce(run->topic, partition, RD_KAFKA_MSG_F_COPY, run->value, bytes, NULL, 0,
                       (void *)(intptr_t)due_us) == 0) {
    run->sequence++;
    return true;
  }
  if (rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL)
    fail("%s", rd_kafka_err2str(rd_kafka_last_error()));
  return false;
}

static void send_fast(struct run *run, int64_t count) {
  for (int64_t sent = 0; sent < count; sent++) {
    while (!send_record(run, monotonic_us())) rd_kafka_poll(run->client, 100);
    if (sent % POLL_EVERY == 0) rd_kafka_poll(run->client, 0);
  }
}

/* Takes the confirmations while the other thread sleeps until the next record is due. */
static void *poll_until_finished(void *argument) {
  struct run *run = argument;
  while (!atomic_load(&run->finished)) rd_kafka_poll(run->client, 50);
  return NULL;
}

static void send_at_rate(struct run *run, int64_t count) {
  pthread_t poller;
  if (pthread_create(&poller, NULL, poll_until_finished, run) != 0) fail("no thread");
  int64_t start_us = monotonic_us();
  for (int64_t sent = 0; sent < count; sent++) {
    int64_t due_us = start_us + (int64_t)((double)sent * 1e6 / run->options->rate);
    struct timespec due = {.tv_sec = due_us / 1000000, .tv_nsec = due_us % 1000000 * 1000};
    if (due_us > monotonic_us()) clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
    if (!send_record(run, due_us)) fail("the queue is full: the rate is more than is possible");
  }
  atomic_store(&run->finished, true);
  pthread_join(poller, NULL);
}

static void flush(struct run *run) {
  if (rd_kafka_flush(run->client, run->options->idle_seconds * 1000 + 1000) != 0)
    fail("%d records were not confirmed", rd_kafka_outq_len(run->client));
}

void produce(const struct options *options, struct production *production) {
  struct run run = {.options = options, .production = production};
  samples_reserve(&production->latencies, options->records);
  run.value = malloc((size_t)options->record_bytes);
  if (run.value == NULL) fail("no memory");
  run.pool = fill_pool(options);
  start_client(&run);
  if (options->warmup > 0) {
    send_fast(&run, options->warmup);
    flush(&run);
  }
  run.counting = true;
  int64_t start_us = monotonic_us();
  if (options->rate > 0)
    send_at_rate(&run, options->records);
  else
    send_fast(&run, options->records);
  flush(&run);
  production->seconds = (double)(run.last_confirmation_us - start_us) / 1e6;
  rd_kafka_topic_destroy(run.topic);
  rd_kafka_destroy(run.client);
  free(run.pool);
  free(run.value);
}
