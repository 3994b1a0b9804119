"""kafka-python in the checks of keyed delivery (python-common/keyed_group.py)."""

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.errors import CommitFailedError, RebalanceInProgressError
from kafka.structs import OffsetAndMetadata

from clients import POLL_MS, create_topic, deliver, producer
from keyed_place import SESSION_SECONDS, Delivery
from keyed_worker import work

# What was polled is committed by the next poll, and fetched is ahead of a poll by one answer at most.
TRAITS = {
    "commits_in_work": False,
    "fetches_behind": False,
    "in_hand_max": 256,
    "commits_in_rebalance": False,
}


def new_topic(bootstrap, partitions, **config):
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        return create_topic(admin, partitions, prefix="keyed", **config)
    finally:
        admin.close()


class Sender:
    def __init__(self, bootstrap):
        self._client = producer(bootstrap)

    def send(self, topic, records):
        deliver(
            self._client,
            [
                {"topic": topic, "key": key.encode(), "value": str(number).encode()}
                for key, number in records
            ],
        )

    def close(self):
        self._client.close()


open_sender = Sender


def join(place):
    client = KafkaConsumer(
        place.topic,
        bootstrap_servers=place.bootstrap,
        group_id=place.group,
        client_id=f"kafka-python-{place.name}",
        auto_offset_reset="earliest",
        enable_auto_commit=place.own_commits,
        auto_commit_interval_ms=300,
        session_timeout_ms=SESSION_SECONDS * 1000,
        heartbeat_interval_ms=300,
        fetch_max_wait_ms=100,
    )
    return work(client, place, handle_some)


def handle_some(client, place, leaving):
    """Hands over what is polled at once; when the member is to leave, the rest is given back."""
    handled = {}
    for where, records in client.poll(timeout_ms=POLL_MS).items():
        for record in records:
            if leaving.is_set():
                break
            number = int(record.value)
            place.handle(Delivery(record.key.decode(), number, where.partition, record.offset))
            handled[where] = OffsetAndMetadata(record.offset + 1, "", -1)
            if place.commit_each:
                commit(client, {where: handled.pop(where)})
    if handled and not place.own_commits:
        commit(client, handled)


def commit(client, offsets):
    try:
        client.commit(offsets)
    except (CommitFailedError, RebalanceInProgressError):
        # Comes again.
        pass


def lag(bootstrap, group, topic, partitions):
    places = [TopicPartition(topic, part) for part in range(partitions)]
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    reader = KafkaConsumer(bootstrap_servers=bootstrap)
    try:
        committed = admin.list_group_offsets(group)[group]
        ends = reader.end_offsets(places)
    finally:
        admin.close()
        reader.close()
    # As kafka-consumer-groups: a partition without an offset has no lag of its own to show.
    return sum(
        ends[place] - committed[place].offset
        for place in places
        if place in committed and committed[place].offset >= 0
    )
