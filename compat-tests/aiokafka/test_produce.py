"""What a producer may send, and what a broker has to refuse."""

import os
import time

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import MessageSizeTooLargeError
from aiokafka.partitioner import DefaultPartitioner

from broker_suite import unique
from clients import CODECS, deliver, producer, read_topic

TEXT = b"the quick brown fox jumps over the lazy dog " * 20


@pytest.mark.parametrize("acks", [0, 1, "all"])
@pytest.mark.parametrize("codec", CODECS)
async def test_codec_and_acks(bootstrap, new_topic, codec, acks):
    topic = await new_topic()
    values = [b"%d %s" % (number, TEXT) for number in range(100)]
    async with producer(bootstrap, compression_type=codec, acks=acks) as client:
        sent = await deliver(client, [{"topic": topic, "value": value} for value in values])
    if acks == 0:
        assert sent == [None] * 100
    else:
        assert [metadata.offset for metadata in sent] == list(range(100))
    assert [record.value for record in await read_topic(bootstrap, topic, 100)] == values


@pytest.mark.parametrize("codec", CODECS)
async def test_idempotent_producer(bootstrap, new_topic, codec):
    topic = await new_topic(3)
    async with producer(
        bootstrap, enable_idempotence=True, compression_type=codec, max_batch_size=1000
    ) as client:
        await deliver(
            client,
            [{"topic": topic, "partition": n % 3, "value": b"%d" % n} for n in range(600)],
        )
    records = await read_topic(bootstrap, topic, 600, partitions=3)
    for partition in range(3):
        values = [int(record.value) for record in records if record.partition == partition]
        assert values == list(range(partition, 600, 3))


async def test_headers(bootstrap, new_topic):
    topic = await new_topic()
    headers = [("a", b"1"), ("a", b"2"), ("empty", b""), ("größe", "schön".encode())]
    async with producer(bootstrap) as client:
        await client.send_and_wait(topic, b"v", headers=headers)
        await client.send_and_wait(topic, b"without")
    first, second = await read_topic(bootstrap, topic, 2)
    assert list(first.headers) == headers
    assert list(second.headers) == []


async def test_null_and_empty_keys_and_values(bootstrap, new_topic):
    topic = await new_topic()
    # aiokafka refuses a record with neither key nor value.
    pairs = [(k, v) for k in (None, b"", b"key") for v in (None, b"", b"value")][1:]
    async with producer(bootstrap) as client:
        for key, value in pairs:
            await client.send_and_wait(topic, value, key, partition=0)
    records = await read_topic(bootstrap, topic, 8)
    assert [(record.key, record.value) for record in records] == pairs


async def test_create_time(bootstrap, new_topic):
    topic = await new_topic(retention_ms="-1")
    before = int(time.time() * 1000)
    given = [before - 86_400_000, before, before - 1, 1]
    async with producer(bootstrap) as client:
        for stamp in given:
            metadata = await client.send_and_wait(topic, b"v", timestamp_ms=stamp)
            assert (metadata.timestamp, metadata.timestamp_type) == (stamp, 0)
        await client.send_and_wait(topic, b"v")
    *explicit, implicit = await read_topic(bootstrap, topic, 5)
    assert [(record.timestamp, record.timestamp_type) for record in explicit] == [
        (stamp, 0) for stamp in given
    ]
    assert before <= implicit.timestamp <= int(time.time() * 1000)


async def test_log_append_time(bootstrap, new_topic):
    topic = await new_topic(message_timestamp_type="LogAppendTime")
    now = int(time.time() * 1000)
    async with producer(bootstrap) as client:
        metadata = await client.send_and_wait(topic, b"v", timestamp_ms=1)
    assert metadata.timestamp_type == 1
    (record,) = await read_topic(bootstrap, topic, 1)
    assert (record.timestamp, record.timestamp_type) == (metadata.timestamp, 1)
    # Broker and client may run on different machines; their clocks agree to a minute.
    assert abs(record.timestamp - now) < 60_000


@pytest.mark.parametrize("codec", [None, "lz4"])
async def test_large_record(bootstrap, new_topic, codec):
    topic = await new_topic(max_message_bytes="5000000")
    values = [os.urandom(900_000), os.urandom(4_000_000), b"small"]
    async with producer(bootstrap, max_request_size=5_000_000, compression_type=codec) as client:
        for value in values:
            await client.send_and_wait(topic, value)
    records = await read_topic(bootstrap, topic, 3, max_partition_fetch_bytes=1_000_000)
    assert [record.value for record in records] == values


async def test_too_large(bootstrap, new_topic):
    topic = await new_topic()
    async with producer(bootstrap, max_request_size=4_000_000) as client:
        with pytest.raises(MessageSizeTooLargeError):
            await client.send_and_wait(topic, os.urandom(1_200_000))
        await client.send_and_wait(topic, b"the connection still works")
    async with producer(bootstrap) as client:
        with pytest.raises(MessageSizeTooLargeError):
            await client.send_and_wait(topic, b"x" * 1_048_577)
    await read_topic(bootstrap, topic, 1)


async def test_many_partitions(bootstrap, new_topic):
    topic = await new_topic(60)
    async with producer(bootstrap) as client:
        assert await client.partitions_for(topic) == set(range(60))
        await deliver(
            client,
            [
                {"topic": topic, "partition": part, "value": b"%d" % number}
                for number in range(5)
                for part in range(60)
            ],
        )
    records = await read_topic(bootstrap, topic, 300, partitions=60)
    for part in range(60):
        assert [int(record.value) for record in records if record.partition == part] == [
            0,
            1,
            2,
            3,
            4,
        ]


async def test_default_partitioner(bootstrap, new_topic):
    topic = await new_topic(7)
    keys = [b"key-%d" % number for number in range(50)]
    async with producer(bootstrap) as client:
        await deliver(client, [{"topic": topic, "key": key, "value": b"v"} for key in keys])
        await deliver(client, [{"topic": topic, "value": b"v"} for _ in range(100)])
    records = await read_topic(bootstrap, topic, 150, partitions=7)
    place = DefaultPartitioner()
    for record in records:
        if record.key is not None:
            assert record.partition == place(record.key, list(range(7)), list(range(7)))
    assert {record.partition for record in records if record.key is None} == set(range(7))


async def test_own_partitioner(bootstrap, new_topic):
    topic = await new_topic(4)
    async with producer(bootstrap, partitioner=lambda key, parts, _: parts[int(key) % 4]) as client:
        await deliver(
            client, [{"topic": topic, "key": b"%d" % n, "value": b"v"} for n in range(40)]
        )
    records = await read_topic(bootstrap, topic, 40, partitions=4)
    assert all(record.partition == int(record.key) % 4 for record in records)


@pytest.mark.parametrize("codec", CODECS)
async def test_batch_of_the_user(bootstrap, new_topic, codec):
    topic = await new_topic(2)
    async with producer(bootstrap, compression_type=codec) as client:
        batch = client.create_batch()
        for number in range(50):
            batch.append(key=b"k", value=b"%d" % number, timestamp=1000 + number)
        metadata = await (await client.send_batch(batch, topic, partition=1))
    assert (metadata.partition, metadata.offset) == (1, 0)
    records = await read_topic(bootstrap, topic, 50, partitions=2)
    assert [(int(r.value), r.timestamp, r.offset) for r in records] == [
        (number, 1000 + number, number) for number in range(50)
    ]


async def test_linger(bootstrap, new_topic):
    topic = await new_topic()
    async with producer(bootstrap, linger_ms=20, compression_type="zstd") as client:
        await deliver(client, [{"topic": topic, "value": b"%d" % n} for n in range(2000)])
    records = await read_topic(bootstrap, topic, 2000)
    assert [int(record.value) for record in records] == list(range(2000))


async def test_topic_is_created_by_producing(bootstrap, admin):
    topic = unique("automatic")
    async with producer(bootstrap) as client:
        metadata = await client.send_and_wait(topic, b"v", partition=0)
    assert (metadata.topic_partition, metadata.offset) == (TopicPartition(topic, 0), 0)
    await admin.delete_topics([topic])
