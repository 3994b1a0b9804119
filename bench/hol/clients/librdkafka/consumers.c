/* Serial consumers of one group, each a client of its own:
 *
 *   consumers BOOTSTRAP TOPIC GROUP CONSUMERS PARTITIONS EVENTS_FILE
 *
 * A value is "SEQUENCE SERVICE_US"; handling it is to wait for so long. Standard output says
 * "ready" when every consumer has its share of the partitions, and "handled N" as that goes up,
 * after the file has the events: "SEQUENCE START_US END_US MEMBER PARTITION OFFSET". They leave the
 * group when standard input ends.
 *
 * A value that begins with "-" is no work, and only counted, so that writing events is not what is
 * measured: "- START_US END_US MEMBER COUNT" for what a member had since the line before. */
#include <errno.h>
#include <librdkafka/rdkafka.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { POLL_MS = 100, FLUSH_MS = 100 };

struct member {
  int number;
  pthread_t thread;
  rd_kafka_t *client;
  atomic_int assigned;
  /* What was counted since the time beside it; events_lock guards both. */
  long counted;
  int64_t counted_from_us;
};

static atomic_bool stopped;
/* All members have their shares. */
static atomic_bool ready;
static FILE *events;
/* Guards the file and the count of what was written to it. */
static pthread_mutex_t events_lock = PTHREAD_MUTEX_INITIALIZER;
static long handled;

static void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("consumers: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(1);
}

static int64_t now_us(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

static void set_property(rd_kafka_conf_t *configuration, const char *name, const char *value) {
  char error[512];
  if (rd_kafka_conf_set(configuration, name, value, error, sizeof error) != RD_KAFKA_CONF_OK)
    fail("%s", error);
}

static void work_for(long service_us) {
  struct timespec left = {.tv_sec = service_us / 1000000,
                          .tv_nsec = service_us % 1000000 * 1000};
  while (nanosleep(&left, &left) == -1 && errno == EINTR) {
  }
}

static void count(struct member *member) {
  pthread_mutex_lock(&events_lock);
  if (member->counted++ == 0) member->counted_from_us = now_us();
  handled++;
  pthread_mutex_unlock(&events_lock);
}

static void handle(struct member *member, const rd_kafka_message_t *message) {
  if (message->len > 0 && *(const char *)message->payload == '-') {
    count(member);
    return;
  }
  int64_t start_us = now_us();
  char value[64];
  size_t length = message->len < sizeof value - 1 ? message->len : sizeof value - 1;
  memcpy(value, message->payload, length);
  value[length] = 0;
  long sequence, service_us;
  if (sscanf(value, "%ld %ld", &sequence, &service_us) != 2) fail("unknown value %s", value);
  if (service_us > 0) work_for(service_us);
  int64_t end_us = now_us();
  pthread_mutex_lock(&events_lock);
  fprintf(events, "%ld %lld %lld %d %d %lld\n", sequence, (long long)start_us, (long long)end_us,
          member->number, (int)message->partition, (long long)message->offset);
  handled++;
  pthread_mutex_unlock(&events_lock);
}

static int assigned_now(rd_kafka_t *client) {
  rd_kafka_topic_partition_list_t *list = NULL;
  if (rd_kafka_assignment(client, &list)) return 0;
  int count = list->cnt;
  rd_kafka_topic_partition_list_destroy(list);
  return count;
}

static void *work(void *argument) {
  struct member *member = argument;
  while (!stopped) {
    rd_kafka_message_t *message = rd_kafka_consumer_poll(member->client, POLL_MS);
    /* It takes longer than a record. */
    if (!ready) member->assigned = assigned_now(member->client);
    if (message == NULL) continue;
    if (message->err == 0)
      handle(member, message);
    else
      fprintf(stderr, "member %d: %s\n", member->number, rd_kafka_message_errstr(message));
    rd_kafka_message_destroy(message);
  }
  rd_kafka_consumer_close(member->client);
  rd_kafka_destroy(member->client);
  return NULL;
}

/* The defaults, but for what an application has to say. */
static void open_member(struct member *member, int number, char **arguments) {
  rd_kafka_conf_t *configuration = rd_kafka_conf_new();
  set_property(configuration, "bootstrap.servers", arguments[1]);
  set_property(configuration, "group.id", arguments[3]);
  set_property(configuration, "client.id", "hol");
  set_property(configuration, "auto.offset.reset", "earliest");
  char error[512];
  member->number = number;
  member->client = rd_kafka_new(RD_KAFKA_CONSUMER, configuration, error, sizeof error);
  if (member->client == NULL) fail("%s", error);
  rd_kafka_poll_set_consumer(member->client);
  rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
  rd_kafka_topic_partition_list_add(list, arguments[2], RD_KAFKA_PARTITION_UA);
  rd_kafka_resp_err_t result = rd_kafka_subscribe(member->client, list);
  if (result) fail("subscribe: %s", rd_kafka_err2str(result));
  rd_kafka_topic_partition_list_destroy(list);
}

static bool is_shared(const struct member *members, int count, int partitions) {
  int sum = 0;
  for (int number = 0; number < count; number++) {
    int share = members[number].assigned;
    if (share < partitions / count) return false;
    sum += share;
  }
  return sum == partitions;
}

static long flush(struct member *members, int count, long told) {
  pthread_mutex_lock(&events_lock);
  for (struct member *member = members; member < members + count; member++) {
    if (member->counted == 0) continue;
    fprintf(events, "- %lld %lld %d %ld\n", (long long)member->counted_from_us,
            (long long)now_us(), member->number, member->counted);
    member->counted = 0;
  }
  fflush(events);
  long total = handled;
  pthread_mutex_unlock(&events_lock);
  if (total != told) printf("handled %ld\n", total);
  return total;
}

/* Waits for a moment; whether standard input has ended. */
static bool input_ended(void) {
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  char ignored[64];
  return poll(&input, 1, FLUSH_MS) > 0 && read(STDIN_FILENO, ignored, sizeof ignored) <= 0;
}

int main(int argument_count, char **arguments) {
  if (argument_count != 7)
    fail("usage: consumers BOOTSTRAP TOPIC GROUP CONSUMERS PARTITIONS EVENTS_FILE");
  int count = atoi(arguments[4]), partitions = atoi(arguments[5]);
  setvbuf(stdout, NULL, _IOLBF, 0);
  events = fopen(arguments[6], "w");
  if (events == NULL) fail("%s: %s", arguments[6], strerror(errno));
  struct member *members = calloc((size_t)count, sizeof *members);
  if (members == NULL) fail("no memory");
  for (int number = 0; number < count; number++) open_member(&members[number], number, arguments);
  for (int number = 0; number < count; number++)
    if (pthread_create(&members[number].thread, NULL, work, &members[number])) fail("no thread");
  long told = 0;
  while (!input_ended()) {
    if (!ready && is_shared(members, count, partitions)) {
      ready = true;
      puts("ready");
    }
    told = flush(members, count, told);
  }
  stopped = true;
  for (int number = 0; number < count; number++) pthread_join(members[number].thread, NULL);
  flush(members, count, told);
  fclose(events);
  free(members);
  return 0;
}
