"""What a producer may send, and what a broker has to refuse."""

import os
import time

import pytest
from kafka.errors import (
    InvalidTopicError,
    KafkaError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
)

from broker_suite import unique
from clients import deliver, producer, read_topic

CODECS = [None, "gzip", "snappy", "lz4", "zstd"]
TEXT = b"the quick brown fox jumps over the lazy dog " * 20


@pytest.mark.parametrize("acks", [0, 1, "all"])
@pytest.mark.parametrize("codec", CODECS)
def test_codec_and_acks(bootstrap, new_topic, codec, acks):
    topic = new_topic()
    values = [b"%d %s" % (number, TEXT) for number in range(100)]
    client = producer(
        bootstrap, compression_type=codec, acks=acks, enable_idempotence=False, linger_ms=5
    )
    sent = deliver(client, [{"topic": topic, "value": value} for value in values])
    client.close()
    if acks != 0:
        assert [metadata.offset for metadata in sent] == list(range(100))
    assert [record.value for record in read_topic(bootstrap, topic, 100)] == values


def test_idempotent_producer(bootstrap, new_topic):
    topic = new_topic(3)
    client = producer(bootstrap, enable_idempotence=True, acks="all", batch_size=1000)
    deliver(client, [{"topic": topic, "partition": n % 3, "value": b"%d" % n} for n in range(600)])
    client.close()
    records = read_topic(bootstrap, topic, 600, partitions=3)
    for partition in range(3):
        values = [int(record.value) for record in records if record.partition == partition]
        assert values == list(range(partition, 600, 3))


def test_headers(bootstrap, new_topic):
    topic = new_topic()
    headers = [("a", b"1"), ("a", b"2"), ("empty", b""), ("größe", "schön".encode())]
    client = producer(bootstrap)
    deliver(client, [{"topic": topic, "value": b"v", "headers": headers}])
    deliver(client, [{"topic": topic, "value": b"without"}])
    client.close()
    first, second = read_topic(bootstrap, topic, 2)
    assert list(first.headers) == headers
    assert list(second.headers) == []


def test_null_and_empty_keys_and_values(bootstrap, new_topic):
    topic = new_topic()
    # The client refuses a record with neither key nor value.
    pairs = [(k, v) for k in (None, b"", b"key") for v in (None, b"", b"value")][1:]
    client = producer(bootstrap)
    deliver(client, [{"topic": topic, "key": k, "value": v, "partition": 0} for k, v in pairs])
    client.close()
    records = read_topic(bootstrap, topic, 8)
    assert [(record.key, record.value) for record in records] == pairs


def test_timestamps(bootstrap, new_topic):
    topics = [
        new_topic(retention_ms="-1"),
        new_topic(message_timestamp_type="LogAppendTime"),
    ]
    now = int(time.time() * 1000)
    client = producer(bootstrap)
    for topic in topics:
        deliver(client, [{"topic": topic, "value": b"v", "timestamp_ms": 1000}])
    client.close()
    (created,) = read_topic(bootstrap, topics[0], 1)
    assert (created.timestamp, created.timestamp_type) == (1000, 0)
    (appended,) = read_topic(bootstrap, topics[1], 1)
    assert appended.timestamp_type == 1
    # Broker and client may run on different machines; their clocks agree to a minute.
    assert abs(appended.timestamp - now) < 60_000


def test_large_record(bootstrap, new_topic):
    topic = new_topic(max_message_bytes="5000000")
    values = [os.urandom(900_000), os.urandom(4_000_000), b"small"]
    client = producer(bootstrap, max_request_size=5_000_000)
    deliver(client, [{"topic": topic, "value": value} for value in values])
    client.close()
    records = read_topic(bootstrap, topic, 3, max_partition_fetch_bytes=1_000_000)
    assert [record.value for record in records] == values


def test_too_large(bootstrap, new_topic):
    topic = new_topic()
    # The error would be the end of an idempotent producer of this client.
    client = producer(bootstrap, max_request_size=4_000_000, enable_idempotence=False)
    with pytest.raises((MessageSizeTooLargeError, RecordListTooLargeError)):
        deliver(client, [{"topic": topic, "value": os.urandom(1_200_000)}])
    deliver(client, [{"topic": topic, "value": b"the connection still works"}])
    client.close()
    read_topic(bootstrap, topic, 1)


def test_many_partitions(bootstrap, new_topic):
    topic = new_topic(60)
    client = producer(bootstrap)
    assert client.partitions_for(topic) == set(range(60))
    records = [
        {"topic": topic, "partition": part, "value": b"%d" % number}
        for number in range(5)
        for part in range(60)
    ]
    deliver(client, records)
    client.close()
    found = read_topic(bootstrap, topic, 300, partitions=60)
    for part in range(60):
        assert [int(r.value) for r in found if r.partition == part] == [0, 1, 2, 3, 4]


def test_keys_keep_their_partition(bootstrap, new_topic):
    topic = new_topic(7)
    client = producer(bootstrap)
    keys = [b"key-%d" % number for number in range(50)]
    deliver(client, [{"topic": topic, "key": key, "value": b"v"} for key in keys * 2])
    client.close()
    places = {}
    for record in read_topic(bootstrap, topic, 100, partitions=7):
        places.setdefault(record.key, set()).add(record.partition)
    assert all(len(parts) == 1 for parts in places.values())


def test_topic_is_created_by_producing(bootstrap, admin):
    topic = unique("automatic")
    client = producer(bootstrap)
    (metadata,) = deliver(client, [{"topic": topic, "value": b"v", "partition": 0}])
    client.close()
    assert metadata.offset == 0
    admin.delete_topics([topic])


def test_invalid_topic_name(bootstrap):
    client = producer(bootstrap, max_block_ms=2000)
    with pytest.raises((InvalidTopicError, KafkaError, ValueError)):
        deliver(client, [{"topic": "not a valid name", "value": b"v"}])
    client.close()
