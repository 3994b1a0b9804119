"""Reading partitions that the consumer assigns itself: where it starts, moves, pauses and ends."""

import os
import time

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    KafkaException,
    TopicPartition,
)

from broker_suite import unique, until
from clients import consumer, deliver, error_of, producer, read, read_topic


@pytest.fixture
def numbers(bootstrap, new_topic):
    """A topic with one partition whose record at offset n has the value n and the timestamp
    1_000_000 + 10 n, in many small batches."""
    # A broker may delete records as old as these at any time.
    topic = new_topic(retention_ms="-1")
    client = producer(bootstrap, batch_num_messages=7, enable_idempotence=True)
    deliver(
        client,
        [
            {"topic": topic, "partition": 0, "value": str(n), "timestamp": 1_000_000 + 10 * n}
            for n in range(100)
        ],
    )
    return topic


@pytest.fixture
def reader(bootstrap):
    client = consumer(bootstrap)
    yield client
    client.close()


def values(messages):
    return [int(message.value()) for message in messages]


@pytest.mark.parametrize(("start", "first"), [(OFFSET_BEGINNING, 0), (0, 0), (42, 42), (99, 99)])
def test_assign_from(numbers, reader, start, first):
    reader.assign([TopicPartition(numbers, 0, start)])
    messages = read(reader, 100 - first)
    assert values(messages) == list(range(first, 100))
    assert [message.offset() for message in messages] == list(range(first, 100))


@pytest.mark.parametrize("start", [OFFSET_END, 100])
def test_assign_at_end(bootstrap, numbers, start):
    reader = consumer(bootstrap, enable_partition_eof=True)
    reader.assign([TopicPartition(numbers, 0, start)])
    end = until(lambda: reader.poll(0.1), "end of partition")
    assert end.error().name() == "_PARTITION_EOF"
    deliver(producer(bootstrap), [{"topic": numbers, "value": b"100", "partition": 0}])
    assert values(read(reader, 1)) == [100]
    reader.close()


@pytest.mark.parametrize(("reset", "first"), [("earliest", 0), ("latest", 100)])
def test_subscribe_without_commit_starts_by_reset(bootstrap, numbers, reset, first):
    reader = consumer(bootstrap, auto_offset_reset=reset, enable_partition_eof=True)
    reader.subscribe([numbers])
    if first == 100:
        end = until(lambda: reader.poll(0.1), "end of partition")
        assert end.error().name() == "_PARTITION_EOF"
        deliver(producer(bootstrap), [{"topic": numbers, "value": b"100"}])
    assert values(read(reader, 1)) == [first]
    reader.close()


def test_reset_error(bootstrap, numbers):
    reader = consumer(bootstrap, auto_offset_reset="error")
    reader.subscribe([numbers])
    message = until(lambda: reader.poll(0.1), "the error")
    assert message.error().name() == "_AUTO_OFFSET_RESET"
    reader.close()


@pytest.mark.parametrize(("reset", "first"), [("earliest", 0), ("latest", 100)])
def test_offset_out_of_range(bootstrap, numbers, reset, first):
    reader = consumer(bootstrap, auto_offset_reset=reset)
    reader.assign([TopicPartition(numbers, 0, 1000)])
    if first == 100:
        # The reset has happened once the position is known to be valid again.
        until(lambda: reader.poll(0.05) is None and at_end(reader, numbers), "reset to the end")
        deliver(producer(bootstrap), [{"topic": numbers, "value": b"100", "partition": 0}])
    assert values(read(reader, 1)) == [first]
    reader.close()


def at_end(reader, topic):
    return reader.get_watermark_offsets(TopicPartition(topic, 0), cached=True)[1] == 100


def test_seek(numbers, reader):
    reader.assign([TopicPartition(numbers, 0, 0)])
    assert values(read(reader, 10)) == list(range(10))
    for target in (90, 5, 50, 0):
        reader.seek(TopicPartition(numbers, 0, target))
        assert values(read(reader, 3)) == [target, target + 1, target + 2]
    reader.seek(TopicPartition(numbers, 0, OFFSET_BEGINNING))
    assert values(read(reader, 100)) == list(range(100))


def test_pause_and_resume(bootstrap, new_topic, reader):
    topic = new_topic(2)
    client = producer(bootstrap)
    parts = [TopicPartition(topic, part, 0) for part in range(2)]
    reader.assign(parts)
    reader.pause([parts[0]])
    records = [{"topic": topic, "partition": n % 2, "value": str(n)} for n in range(20)]
    deliver(client, records)
    assert values(read(reader, 10)) == list(range(1, 20, 2))
    # A later record of the open partition arrives, and still nothing of the paused one.
    deliver(client, [{"topic": topic, "partition": 1, "value": b"21"}])
    assert values(read(reader, 1)) == [21]
    reader.resume([parts[0]])
    assert values(read(reader, 10)) == list(range(0, 20, 2))


def test_position(numbers, reader):
    part = TopicPartition(numbers, 0, 20)
    reader.assign([part])
    assert reader.position([part])[0].offset == OFFSET_INVALID
    read(reader, 5)
    assert reader.position([part])[0].offset == 25


def test_offsets_for_times(numbers, reader):
    def lookup(stamp):
        return reader.offsets_for_times([TopicPartition(numbers, 0, stamp)], 10)[0].offset

    assert lookup(0) == 0
    assert lookup(1_000_000) == 0
    assert lookup(1_000_001) == 1
    assert lookup(1_000_010) == 1
    assert lookup(1_000_505) == 51
    assert lookup(1_000_990) == 99
    assert lookup(1_000_991) == OFFSET_END


def test_start_at_timestamp(numbers, reader):
    found = reader.offsets_for_times([TopicPartition(numbers, 0, 1_000_700)], 10)
    reader.assign(found)
    assert values(read(reader, 30)) == list(range(70, 100))


def test_offsets_for_times_of_unknown_partition(numbers, reader):
    part = TopicPartition(numbers, 7, 0)

    def lookup():
        found = reader.offsets_for_times([part], 10)[0]
        if found.error:
            raise KafkaException(found.error)

    assert error_of(lookup) in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_PARTITION")


def test_watermarks(bootstrap, admin, numbers, new_topic, reader):
    part = TopicPartition(numbers, 0)
    assert reader.get_watermark_offsets(part, timeout=10) == (0, 100)
    assert reader.get_watermark_offsets(TopicPartition(new_topic(), 0), timeout=10) == (0, 0)
    admin.delete_records([TopicPartition(numbers, 0, 30)])
    assert until(lambda: reader.get_watermark_offsets(part, timeout=10)[0], "low mark") == 30
    reader.assign([TopicPartition(numbers, 0, 30)])
    read(reader, 70)
    assert reader.get_watermark_offsets(part, cached=True)[1] == 100


def test_end_of_each_partition(bootstrap, new_topic):
    topic = new_topic(3)
    deliver(producer(bootstrap), [{"topic": topic, "partition": 1, "value": b"v"}])
    reader = consumer(bootstrap, enable_partition_eof=True)
    reader.assign([TopicPartition(topic, part, OFFSET_BEGINNING) for part in range(3)])
    ends = {}

    def all_ended():
        message = reader.poll(0.1)
        if message and message.error():
            assert message.error().name() == "_PARTITION_EOF"
            ends[message.partition()] = message.offset()
        return len(ends) == 3

    until(all_ended, "three ends", pause=0)
    assert ends == {0: 0, 1: 1, 2: 0}
    reader.close()


def test_incremental_assign(bootstrap, new_topic, reader):
    topic = new_topic(3)
    records = [{"topic": topic, "partition": part, "value": str(part)} for part in range(3)]
    client = producer(bootstrap)
    deliver(client, records)
    reader.incremental_assign([TopicPartition(topic, 0, 0)])
    assert values(read(reader, 1)) == [0]
    reader.incremental_assign([TopicPartition(topic, 1, 0), TopicPartition(topic, 2, 0)])
    assert sorted(values(read(reader, 2))) == [1, 2]
    reader.incremental_unassign([TopicPartition(topic, 0), TopicPartition(topic, 2)])
    deliver(client, records)
    assert values(read(reader, 1)) == [1]
    assert [part.partition for part in reader.assignment()] == [1]


def test_read_committed_without_transactions(bootstrap, numbers):
    messages = read_topic(bootstrap, numbers, 100, isolation_level="read_committed")
    assert values(messages) == list(range(100))
    reader = consumer(bootstrap, isolation_level="read_committed")
    assert reader.get_watermark_offsets(TopicPartition(numbers, 0), timeout=10) == (0, 100)
    reader.close()


@pytest.mark.parametrize("limit", [1, 200, 5000])
def test_small_fetches(bootstrap, numbers, limit):
    """A batch larger than the limit is given whole, or nothing would ever move (KIP-74)."""
    messages = read_topic(bootstrap, numbers, 100, fetch_message_max_bytes=limit)
    assert values(messages) == list(range(100))


def test_parked_fetch_is_woken_by_a_record(bootstrap, new_topic):
    """fetch.wait.max.ms is long, the record must come long before it is over."""
    topic = new_topic()
    reader = consumer(bootstrap, fetch_wait_max_ms=20000, socket_timeout_ms=60000)
    reader.assign([TopicPartition(topic, 0, 0)])
    # A first record proves that the loop of fetches runs; the next fetch is then parked.
    for value in (b"1", b"2", b"3"):
        started = time.monotonic()
        deliver(producer(bootstrap, linger_ms=0), [{"topic": topic, "value": value}])
        assert read(reader, 1)[0].value() == value
        assert time.monotonic() - started < 10
    reader.close()


def test_fetch_waits_for_min_bytes(bootstrap, new_topic):
    topic = new_topic()
    reader = consumer(bootstrap, fetch_min_bytes=20000, fetch_wait_max_ms=1000)
    reader.assign([TopicPartition(topic, 0, 0)])
    deliver(producer(bootstrap), [{"topic": topic, "value": b"small"}])
    # Far below the minimum: given when fetch.wait.max.ms is over.
    assert read(reader, 1)[0].value() == b"small"
    deliver(producer(bootstrap), [{"topic": topic, "value": b"x" * 30000}])
    assert len(read(reader, 1)[0].value()) == 30000
    reader.close()


def test_unknown_topic_is_an_error(bootstrap):
    reader = consumer(bootstrap, allow_auto_create_topics=False)
    reader.subscribe([unique("missing")])
    message = until(lambda: reader.poll(0.1), "the error")
    assert message.error().name() == "UNKNOWN_TOPIC_OR_PART"
    reader.close()


def test_topic_is_created_by_consuming(bootstrap, admin):
    """Asking for the metadata of an assigned topic creates it; with subscribe() librdkafka does not
    ask in that way."""
    topic = unique("automatic")
    reader = consumer(
        bootstrap, allow_auto_create_topics=True, topic_metadata_refresh_interval_ms=500
    )
    reader.assign([TopicPartition(topic, 0, 0)])

    def created():
        reader.poll(0.05)
        return topic in admin.list_topics(timeout=10).topics

    until(created, "creation", pause=0)
    deliver(producer(bootstrap), [{"topic": topic, "value": b"v", "partition": 0}])

    def arrived():
        message = reader.poll(0.1)
        return message is not None and message.error() is None

    until(arrived, "the record", pause=0)
    reader.close()
    admin.delete_topics([topic])[topic].result(20)


def test_metadata(bootstrap, admin, new_topic, reader):
    topics = [new_topic(partitions) for partitions in (1, 4)]
    one = reader.list_topics(topics[1], timeout=10)
    assert list(one.topics) == [topics[1]]
    assert sorted(one.topics[topics[1]].partitions) == [0, 1, 2, 3]
    every = reader.list_topics(timeout=10)
    assert set(topics) <= set(every.topics)
    assert every.cluster_id
    assert every.controller_id in every.brokers
    for part in every.topics[topics[1]].partitions.values():
        assert part.leader in every.brokers
        assert part.leader in part.replicas
        assert part.leader in part.isrs


def test_metadata_of_unknown_topic(admin):
    name = unique("missing")
    topic = admin.list_topics(name, timeout=10).topics[name]
    # The question allows auto creation. Kafka creates the topic, but first says that there is
    # none; Keylane answers when it is there.
    if os.environ.get("COMPAT_BROKER") == "keylane":
        assert topic.error is None
        assert len(topic.partitions) >= 1
    else:
        assert topic.error.name() == "UNKNOWN_TOPIC_OR_PART"
