"""confluent-kafka in the checks of keyed delivery (python-common/keyed_group.py)."""

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from clients import admin_client, consumer, create_topic, deliver, producer
from keyed_place import SESSION_SECONDS, Delivery
from keyed_worker import work

TRAITS = {
    "commits_in_work": True,
    "fetches_behind": True,
    "in_hand_max": 256,
    "rejoins_in_work": True,
}


def new_topic(bootstrap, partitions, **config):
    return create_topic(admin_client(bootstrap), partitions, prefix="keyed", **config)


class Sender:
    def __init__(self, bootstrap):
        # Else a round whose answer is lost with the broker is in the log twice.
        self._client = producer(bootstrap, linger_ms=0, enable_idempotence=True)

    def send(self, topic, records):
        deliver(
            self._client,
            [{"topic": topic, "key": key, "value": str(number)} for key, number in records],
        )

    def close(self):
        pass


open_sender = Sender


def join(place):
    settings = {
        "client.id": place.name,
        "session.timeout.ms": SESSION_SECONDS * 1000,
        "heartbeat.interval.ms": 300,
        "enable.auto.commit": place.own_commits,
        "auto.commit.interval.ms": 300,
    }
    client = consumer(place.bootstrap, place.group, **settings)
    client.subscribe([place.topic])
    return work(client, place, handle_some)


def handle_some(client, place, leaving):
    """Hands over what is polled at once; when the member is to leave, the rest is given back."""
    handled = {}
    first = client.poll(0.05)
    # What else is there already; consume() would wait until it has as many as it was asked for.
    more = [] if first is None or place.own_commits else client.consume(49, timeout=0)
    for message in [first, *more] if first else []:
        if message.error():
            raise KafkaException(message.error())
        if leaving.is_set():
            break
        record = Delivery(
            message.key().decode(), int(message.value()), message.partition(), message.offset()
        )
        place.handle(record)
        if place.commit_each:
            client.commit(message=message, asynchronous=False)
        else:
            handled[record.partition] = record.offset + 1
    if handled and not place.own_commits:
        offsets = [TopicPartition(place.topic, part, at) for part, at in handled.items()]
        client.commit(offsets=offsets, asynchronous=False)


def lag(bootstrap, group, topic, partitions):
    admin = admin_client(bootstrap)
    places = [TopicPartition(topic, part) for part in range(partitions)]
    ends = {
        place.partition: future.result(20).offset
        for place, future in admin.list_offsets(
            {place: OffsetSpec.latest() for place in places}
        ).items()
    }
    request = [ConsumerGroupTopicPartitions(group, places)]
    answer = admin.list_consumer_group_offsets(request)[group].result(20)
    # As kafka-consumer-groups: a partition without an offset has no lag of its own to show.
    return sum(
        ends[place.partition] - place.offset
        for place in answer.topic_partitions
        if place.offset >= 0
    )
