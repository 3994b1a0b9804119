"""Reading partitions that the consumer assigns itself."""

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import NoOffsetForPartitionError, OffsetOutOfRangeError

from broker_suite import unique
from clients import consumer, deliver, eventually, producer, read, read_topic
from aiokafka.admin import RecordsToDelete


@pytest.fixture
async def numbers(bootstrap, new_topic):
    """A partition whose record at offset n has the value n and the timestamp 1_000_000 + 10 n, in
    many small batches."""
    # A broker may delete records as old as these at any time.
    topic = await new_topic(retention_ms="-1")
    async with producer(bootstrap, max_batch_size=500) as client:
        await deliver(
            client,
            [
                {"topic": topic, "value": b"%d" % n, "timestamp_ms": 1_000_000 + 10 * n}
                for n in range(100)
            ],
        )
    return TopicPartition(topic, 0)


@pytest.fixture
async def reader(bootstrap, numbers):
    async with consumer(bootstrap) as client:
        client.assign([numbers])
        yield client


def values(records):
    return [int(record.value) for record in records]


async def produce_one(bootstrap, place, value):
    async with producer(bootstrap) as client:
        await client.send_and_wait(place.topic, value, partition=place.partition)


@pytest.mark.parametrize("start", [0, 42, 99])
async def test_seek_to_offset(numbers, reader, start):
    reader.seek(numbers, start)
    records = await read(reader, 100 - start)
    assert values(records) == list(range(start, 100))
    assert [record.offset for record in records] == list(range(start, 100))


async def test_seek_back_and_forth(numbers, reader):
    for target in (50, 5, 97, 0):
        reader.seek(numbers, target)
        assert values(await read(reader, 3)) == [target, target + 1, target + 2]
    await reader.seek_to_beginning()
    assert values(await read(reader, 100)) == list(range(100))


async def test_seek_to_end(bootstrap, numbers, reader):
    await reader.seek_to_end()
    assert await reader.position(numbers) == 100
    await produce_one(bootstrap, numbers, b"100")
    assert values(await read(reader, 1)) == [100]


@pytest.mark.parametrize(("reset", "first"), [("earliest", 0), ("latest", 100)])
async def test_offset_reset(bootstrap, numbers, reset, first):
    async with consumer(bootstrap, numbers.topic, auto_offset_reset=reset) as client:
        place = numbers
        assert await client.position(place) == first
        await produce_one(bootstrap, numbers, b"100")
        assert values(await read(client, 1)) == [first]


@pytest.mark.parametrize(("reset", "first"), [("earliest", 0), ("latest", 100)])
async def test_offset_out_of_range(bootstrap, numbers, reset, first):
    async with consumer(bootstrap, auto_offset_reset=reset) as client:
        client.assign([numbers])
        client.seek(numbers, 5000)
        if reset == "latest":

            async def moved():
                await client.getmany(timeout_ms=20)
                return await client.position(numbers) == first

            await eventually(moved, "the reset")
            await produce_one(bootstrap, numbers, b"100")
        assert values(await read(client, 1)) == [first]


async def test_no_reset(bootstrap, numbers):
    async with consumer(bootstrap, auto_offset_reset="none") as client:
        client.assign([numbers])
        client.seek(numbers, 5000)
        with pytest.raises(OffsetOutOfRangeError):
            await client.getone()
    async with consumer(bootstrap, group_id=unique("group"), auto_offset_reset="none") as client:
        client.assign([numbers])
        with pytest.raises(NoOffsetForPartitionError):
            await client.getone()


async def test_pause_and_resume(bootstrap, new_topic):
    topic = await new_topic(2)
    places = [TopicPartition(topic, part) for part in range(2)]
    async with producer(bootstrap) as client, consumer(bootstrap) as reader:
        reader.assign(places)
        reader.pause(places[0])
        assert reader.paused() == {places[0]}
        await deliver(
            client,
            [{"topic": topic, "partition": n % 2, "value": b"%d" % n} for n in range(20)],
        )
        assert values(await read(reader, 10)) == list(range(1, 20, 2))
        # A later record of the open partition arrives, and still nothing of the paused one.
        await client.send_and_wait(topic, b"21", partition=1)
        assert values(await read(reader, 1)) == [21]
        reader.resume(places[0])
        assert values(await read(reader, 10)) == list(range(0, 20, 2))


async def test_position_and_highwater(numbers, reader):
    reader.seek(numbers, 20)
    assert await reader.position(numbers) == 20
    await read(reader, 5)
    assert await reader.position(numbers) == 25
    assert reader.highwater(numbers) == 100
    assert reader.last_stable_offset(numbers) in (100, -1, None)


async def test_offsets_for_times(numbers, reader):
    async def lookup(stamp):
        found = (await reader.offsets_for_times({numbers: stamp}))[numbers]
        return found and (found.offset, found.timestamp)

    assert await lookup(0) == (0, 1_000_000)
    assert await lookup(1_000_001) == (1, 1_000_010)
    assert await lookup(1_000_505) == (51, 1_000_510)
    assert await lookup(1_000_990) == (99, 1_000_990)
    assert await lookup(1_000_991) is None


async def test_beginning_and_end(admin, numbers, reader):
    assert await reader.beginning_offsets([numbers]) == {numbers: 0}
    assert await reader.end_offsets([numbers]) == {numbers: 100}
    await admin.delete_records({numbers: RecordsToDelete(30)})
    assert await reader.beginning_offsets([numbers]) == {numbers: 30}
    await reader.seek_to_beginning()
    assert values(await read(reader, 1)) == [30]


async def test_read_committed_without_transactions(bootstrap, numbers):
    records = await read_topic(bootstrap, numbers.topic, 100, isolation_level="read_committed")
    assert values(records) == list(range(100))
    async with consumer(bootstrap, isolation_level="read_committed") as client:
        assert await client.end_offsets([numbers]) == {numbers: 100}
        client.assign([numbers])
        await read(client, 1)
        assert client.last_stable_offset(numbers) == 100


@pytest.mark.parametrize("limit", [1, 600, 5000])
async def test_small_fetches(bootstrap, numbers, limit):
    """A batch larger than the limit is given whole, or nothing would ever move (KIP-74)."""
    for setting in ("max_partition_fetch_bytes", "fetch_max_bytes"):
        records = await read_topic(bootstrap, numbers.topic, 100, **{setting: limit})
        assert values(records) == list(range(100))


async def test_parked_fetch_is_woken_by_a_record(bootstrap, new_topic):
    """fetch_max_wait_ms is long, the record must come long before it is over."""
    topic = await new_topic()
    async with (
        producer(bootstrap) as client,
        consumer(bootstrap, topic, fetch_max_wait_ms=20000) as reader,
    ):
        for value in (b"1", b"2", b"3"):
            waiting = asyncio.create_task(reader.getone())
            await client.send_and_wait(topic, value)
            async with asyncio.timeout(10):
                assert (await waiting).value == value


async def test_fetch_min_bytes(bootstrap, new_topic):
    topic = await new_topic()
    async with (
        producer(bootstrap) as client,
        consumer(bootstrap, topic, fetch_min_bytes=20000, fetch_max_wait_ms=500) as reader,
    ):
        await client.send_and_wait(topic, b"small")
        assert (await read(reader, 1))[0].value == b"small"
        await client.send_and_wait(topic, b"x" * 30000)
        assert len((await read(reader, 1))[0].value) == 30000


async def test_iteration(bootstrap, numbers, reader):
    seen = []
    async for record in reader:
        seen.append(int(record.value))
        if len(seen) == 100:
            break
    assert seen == list(range(100))


async def test_topics_of_the_cluster(bootstrap, new_topic):
    topics = [await new_topic(1), await new_topic(4)]
    async with consumer(bootstrap) as client:
        assert set(topics) <= await client.topics()
    async with consumer(bootstrap, topics[1]) as client:
        assert client.partitions_for_topic(topics[1]) == {0, 1, 2, 3}


async def test_subscription_without_group(bootstrap, new_topic):
    topics = [await new_topic(2), await new_topic(1)]
    client = AIOKafkaConsumer(
        *topics, bootstrap_servers=bootstrap, group_id=None, auto_offset_reset="earliest"
    )
    await client.start()
    try:
        async with producer(bootstrap) as sender:
            for topic in topics:
                await sender.send_and_wait(topic, topic.encode())
        assert {record.topic for record in await read(client, 2)} == set(topics)
    finally:
        await client.stop()
