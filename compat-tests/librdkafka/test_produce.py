"""What a producer may send, and what a broker has to refuse."""

import json
import os
import time
import zlib
from collections import Counter

import pytest
from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    KafkaException,
    TopicPartition,
)

from broker_suite import unique, until
from clients import CODECS, consumer, deliver, error_of, producer, read, read_topic

# Compresses well, so librdkafka does not fall back to an uncompressed batch.
TEXT = b"the quick brown fox jumps over the lazy dog " * 20


@pytest.mark.parametrize("acks", ["0", "1", "all"])
@pytest.mark.parametrize("codec", CODECS)
def test_codec_and_acks(bootstrap, new_topic, codec, acks):
    topic = new_topic()
    client = producer(bootstrap, compression_type=codec, acks=acks)
    values = [b"%d %s" % (number, TEXT) for number in range(100)]
    delivered = deliver(client, [{"topic": topic, "value": value} for value in values])
    if acks != "0":
        assert [message.offset() for message in delivered] == list(range(100))
    assert [message.value() for message in read_topic(bootstrap, topic, 100)] == values


@pytest.mark.parametrize("codec", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_codec_of_topic(bootstrap, new_topic, codec):
    """compression.type of the topic overrides what the producer chose (TopicConfig.java)."""
    topic = new_topic(compression_type=codec)
    client = producer(bootstrap, compression_type="gzip" if codec == "uncompressed" else "none")
    deliver(client, [{"topic": topic, "value": TEXT, "key": str(n)} for n in range(100)])
    assert [message.key() for message in read_topic(bootstrap, topic, 100)] == [
        b"%d" % n for n in range(100)
    ]
    plain_size, wire_size = 100 * len(TEXT), bytes_to_read(bootstrap, topic, 100)
    assert wire_size > plain_size if codec == "uncompressed" else wire_size < plain_size / 4


def bytes_to_read(bootstrap, topic, count):
    """How many bytes a consumer receives while it reads the topic once."""
    received = []

    def note(stats):
        brokers = json.loads(stats)["brokers"].values()
        received.append(sum(broker["rxbytes"] for broker in brokers))

    reader = consumer(bootstrap, statistics_interval_ms=20, stats_cb=note)
    reader.assign([TopicPartition(topic, 0, 0)])
    assert {message.value() for message in read(reader, count)} == {TEXT}
    received.clear()

    def reported():
        reader.poll(0.05)
        return received

    until(reported, "statistics", pause=0)
    reader.close()
    return received[-1]


def test_idempotent_producer(bootstrap, new_topic):
    topic = new_topic(3)
    client = producer(bootstrap, enable_idempotence=True, compression_type="lz4", linger_ms=0)
    records = [
        {"topic": topic, "partition": number % 3, "value": str(number)} for number in range(3000)
    ]
    deliver(client, records)
    messages = read_topic(bootstrap, topic, 3000, partitions=3)
    for partition in range(3):
        values = [int(m.value()) for m in messages if m.partition() == partition]
        assert values == list(range(partition, 3000, 3))


def test_two_idempotent_producers_share_a_partition(bootstrap, new_topic):
    topic = new_topic()
    clients = [producer(bootstrap, enable_idempotence=True, linger_ms=0) for _ in range(2)]
    for number in range(20):
        for name, client in enumerate(clients):
            deliver(client, [{"topic": topic, "key": str(name), "value": str(number)}])
    messages = read_topic(bootstrap, topic, 40)
    for name in (b"0", b"1"):
        assert [int(m.value()) for m in messages if m.key() == name] == list(range(20))


def test_batches_keep_their_order(bootstrap, new_topic):
    topic = new_topic(2)
    # Else a batch that came before the broker knew of the new topic is sent again behind others.
    settings = {"enable_idempotence": True, "compression_type": "zstd"}
    client = producer(bootstrap, linger_ms=50, batch_num_messages=500, **settings)
    deliver(
        client,
        [{"topic": topic, "partition": n % 2, "value": str(n)} for n in range(10000)],
    )
    messages = read_topic(bootstrap, topic, 10000, partitions=2)
    for partition in range(2):
        placed = [m for m in messages if m.partition() == partition]
        assert [int(m.value()) for m in placed] == list(range(partition, 10000, 2))
        assert [m.offset() for m in placed] == list(range(5000))


def test_headers(bootstrap, new_topic):
    topic = new_topic()
    headers = [
        ("text", b"value"),
        ("again", b"first"),
        ("again", b"second"),
        ("null", None),
        ("empty", b""),
        ("binary", bytes(range(256))),
        ("größe", "schön".encode()),
        ("", b"a header without a name"),
    ]
    deliver(producer(bootstrap), [{"topic": topic, "value": b"v", "headers": headers}])
    deliver(producer(bootstrap), [{"topic": topic, "value": b"without"}])
    first, second = read_topic(bootstrap, topic, 2)
    assert first.headers() == headers
    assert not second.headers()


def test_many_headers(bootstrap, new_topic):
    topic = new_topic()
    headers = [(f"header-{number}", b"x" * number) for number in range(1000)]
    deliver(producer(bootstrap), [{"topic": topic, "value": b"v", "headers": headers}])
    assert read_topic(bootstrap, topic, 1)[0].headers() == headers


@pytest.mark.parametrize("codec", ["none", "snappy"])
def test_null_and_empty_keys_and_values(bootstrap, new_topic, codec):
    topic = new_topic()
    pairs = [(k, v) for k in (None, b"", b"key") for v in (None, b"", b"value")]
    client = producer(bootstrap, compression_type=codec)
    deliver(client, [{"topic": topic, "key": k, "value": v, "partition": 0} for k, v in pairs])
    assert [(m.key(), m.value()) for m in read_topic(bootstrap, topic, 9)] == pairs


def test_create_time(bootstrap, new_topic):
    topic = new_topic(retention_ms="-1")
    before = int(time.time() * 1000)
    given = [before - 86_400_000, before, before - 1, 1, before - 500]
    client = producer(bootstrap)
    deliver(client, [{"topic": topic, "value": b"v", "timestamp": stamp} for stamp in given])
    deliver(client, [{"topic": topic, "value": b"v"}])
    after = int(time.time() * 1000)
    *explicit, implicit = [message.timestamp() for message in read_topic(bootstrap, topic, 6)]
    assert explicit == [(TIMESTAMP_CREATE_TIME, stamp) for stamp in given]
    assert implicit[0] == TIMESTAMP_CREATE_TIME
    assert before <= implicit[1] <= after


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_log_append_time(bootstrap, new_topic, codec):
    topic = new_topic(message_timestamp_type="LogAppendTime")
    client = producer(bootstrap, compression_type=codec)
    records = [{"topic": topic, "value": TEXT, "timestamp": 1} for _ in range(10)]
    before = int(time.time() * 1000)
    deliver(client, records)
    for message in read_topic(bootstrap, topic, 10):
        kind, stamp = message.timestamp()
        assert kind == TIMESTAMP_LOG_APPEND_TIME
        # Broker and client may run on different machines; their clocks agree to a minute.
        assert abs(stamp - before) < 60_000


def test_timestamp_out_of_bounds(bootstrap, new_topic):
    topic = new_topic(
        message_timestamp_before_max_ms="60000", message_timestamp_after_max_ms="60000"
    )
    client = producer(bootstrap)
    now = int(time.time() * 1000)
    deliver(client, [{"topic": topic, "value": b"v", "timestamp": now}])
    for stamp in (now - 600_000, now + 600_000):
        record = {"topic": topic, "value": b"v", "timestamp": stamp}
        assert error_of(lambda record=record: deliver(client, [record])) == "INVALID_TIMESTAMP"
    read_topic(bootstrap, topic, 1)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_large_record(bootstrap, new_topic, codec):
    topic = new_topic(max_message_bytes="5000000")
    client = producer(bootstrap, message_max_bytes=5000000, compression_type=codec)
    values = [os.urandom(900_000), os.urandom(4_000_000), b"small"]
    deliver(client, [{"topic": topic, "value": value} for value in values])
    # The second record is larger than what the consumer asks for: it gets it nevertheless (KIP-74).
    messages = read_topic(
        bootstrap,
        topic,
        3,
        max_partition_fetch_bytes=1_000_000,
        fetch_max_bytes=1_000_000,
        message_max_bytes=1_000_000,
    )
    assert [message.value() for message in messages] == values


def test_too_large_for_broker_default(bootstrap, new_topic):
    topic = new_topic()
    client = producer(bootstrap, message_max_bytes=4_000_000)
    big = {"topic": topic, "value": os.urandom(1_200_000)}
    assert error_of(lambda: deliver(client, [big])) == "MSG_SIZE_TOO_LARGE"
    deliver(client, [{"topic": topic, "value": b"the connection still works"}])
    read_topic(bootstrap, topic, 1)


def test_too_large_for_topic(bootstrap, new_topic):
    topic = new_topic(max_message_bytes="1000")
    client = producer(bootstrap)
    deliver(client, [{"topic": topic, "value": b"x" * 800}])
    big = {"topic": topic, "value": b"x" * 1001}
    assert error_of(lambda: deliver(client, [big])) == "MSG_SIZE_TOO_LARGE"
    # Compressed it fits: the limit is on the batch as it is stored.
    deliver(producer(bootstrap, compression_type="gzip"), [big])
    assert [len(m.value()) for m in read_topic(bootstrap, topic, 2)] == [800, 1001]


def test_too_large_for_client(bootstrap, new_topic):
    topic = new_topic()
    with pytest.raises(KafkaException) as raised:
        producer(bootstrap).produce(topic, b"x" * 1_000_001)
    assert raised.value.args[0].name() == "MSG_SIZE_TOO_LARGE"


def test_many_partitions(bootstrap, new_topic):
    topic = new_topic(100)
    client = producer(bootstrap)
    records = [
        {"topic": topic, "partition": part, "value": f"{part} {number}"}
        for number in range(5)
        for part in range(100)
    ]
    deliver(client, records)
    messages = read_topic(bootstrap, topic, 500, partitions=100)
    for part in range(100):
        values = [m.value().decode() for m in messages if m.partition() == part]
        assert values == [f"{part} {number}" for number in range(5)]


def murmur2(data):
    """Java's default hash of a key (org.apache.kafka.common.utils.Utils.murmur2)."""
    mixer, mask = 0x5BD1E995, 0xFFFFFFFF
    hashed = (0x9747B28C ^ len(data)) & mask
    whole = len(data) // 4 * 4
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start : start + 4], "little") * mixer & mask
        word = (word ^ word >> 24) * mixer & mask
        hashed = (hashed * mixer & mask) ^ word
    if whole < len(data):
        hashed = (hashed ^ int.from_bytes(data[whole:], "little")) * mixer & mask
    hashed = (hashed ^ hashed >> 13) * mixer & mask
    return hashed ^ hashed >> 15


PARTITIONERS = {
    "consistent": zlib.crc32,
    "consistent_random": zlib.crc32,
    "murmur2": lambda key: murmur2(key) & 0x7FFFFFFF,
    "murmur2_random": lambda key: murmur2(key) & 0x7FFFFFFF,
    "fnv1a": None,
    "fnv1a_random": None,
    "random": None,
}


@pytest.mark.thorough
@pytest.mark.parametrize("partitioner", PARTITIONERS)
def test_partitioner(bootstrap, new_topic, partitioner):
    topic = new_topic(7)
    client = producer(bootstrap, partitioner=partitioner)
    keys = [f"key-{number}".encode() for number in range(50)]
    deliver(client, [{"topic": topic, "key": key} for key in keys * 2])
    places = {}
    for message in read_topic(bootstrap, topic, 100, partitions=7):
        places.setdefault(message.key(), []).append(message.partition())
    assert sorted(places) == sorted(keys)
    if partitioner != "random":
        assert all(one == other for one, other in places.values())
    expected = PARTITIONERS[partitioner]
    if expected:
        assert {key: parts[0] for key, parts in places.items()} == {
            key: expected(key) % 7 for key in keys
        }


@pytest.mark.thorough
@pytest.mark.parametrize("sticky_ms", [0, 10])
def test_records_without_key_spread(bootstrap, new_topic, sticky_ms):
    topic = new_topic(4)
    client = producer(bootstrap, sticky_partitioning_linger_ms=sticky_ms)
    counts = Counter()

    def spread():
        # Sticky partitioning stays on one partition for some milliseconds.
        delivered = deliver(client, [{"topic": topic, "value": b"v"} for _ in range(20)])
        counts.update(message.partition() for message in delivered)
        return len(counts) == 4

    until(spread, lambda: f"records in every partition: {counts}", pause=0)
    messages = read_topic(bootstrap, topic, counts.total(), partitions=4)
    assert Counter(message.partition() for message in messages) == counts


def test_unknown_partition(bootstrap, new_topic):
    topic = new_topic(2)
    record = {"topic": topic, "partition": 2, "value": b"v"}
    assert error_of(lambda: deliver(producer(bootstrap), [record])) == "_UNKNOWN_PARTITION"


def test_invalid_topic_name(bootstrap):
    record = {"topic": "not a valid name", "value": b"v"}
    assert error_of(lambda: deliver(producer(bootstrap), [record])) == "TOPIC_EXCEPTION"


def test_topic_is_created_by_producing(bootstrap, admin):
    topic = unique("automatic")
    delivered = deliver(producer(bootstrap), [{"topic": topic, "value": b"v", "partition": 0}])
    assert delivered[0].offset() == 0
    read_topic(bootstrap, topic, 1)
    admin.delete_topics([topic])[topic].result(20)


def test_two_topics_in_one_request(bootstrap, new_topic):
    topics = [new_topic(2), new_topic(3)]
    client = producer(bootstrap, linger_ms=20)
    records = [{"topic": topics[n % 2], "partition": n % 2, "value": str(n)} for n in range(200)]
    deliver(client, records)
    for index, topic in enumerate(topics):
        reader = consumer(bootstrap)
        reader.subscribe([topic])
        assert [int(m.value()) for m in read(reader, 100)] == list(range(index, 200, 2))
        reader.close()
