"""Committed offsets: written in every way the client has, and resumed from."""

import asyncio

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import OffsetMetadataTooLargeError

from broker_suite import unique
from clients import consumer, deliver, eventually, producer, read


@pytest.fixture
async def topic(bootstrap, new_topic):
    """Two partitions with twenty records each."""
    name = await new_topic(2)
    async with producer(bootstrap) as client:
        await deliver(
            client, [{"topic": name, "partition": n % 2, "value": b"%d" % n} for n in range(40)]
        )
    return name


@pytest.fixture
def group():
    return unique("group")


async def committed(bootstrap, group, topic):
    async with consumer(bootstrap, group_id=group) as client:
        return [await client.committed(TopicPartition(topic, part)) for part in range(2)]


async def test_nothing_committed(bootstrap, group, topic):
    assert await committed(bootstrap, group, topic) == [None, None]


async def test_commit_of_offsets(bootstrap, admin, group, topic):
    places = [TopicPartition(topic, part) for part in range(2)]
    async with consumer(bootstrap, group_id=group) as client:
        client.assign(places)
        await client.commit({places[0]: 7, places[1]: (13, "a note")})
        assert await client.committed(places[0]) == 7
        # A commit may go back.
        await client.commit({places[0]: 2})
    assert await committed(bootstrap, group, topic) == [2, 13]
    offsets = await admin.list_consumer_group_offsets(group)
    assert offsets[places[1]].metadata == "a note"


async def test_metadata_too_large(bootstrap, group, topic):
    place = TopicPartition(topic, 0)
    async with consumer(bootstrap, group_id=group) as client:
        client.assign([place])
        with pytest.raises(OffsetMetadataTooLargeError):
            await client.commit({place: (1, "x" * 4097)})
        await client.commit({place: (1, "x" * 4096)})


async def test_resume(bootstrap, group, topic):
    seen = []
    for _ in range(4):
        async with consumer(bootstrap, topic, group_id=group) as client:
            seen += [(record.partition, record.offset) for record in await read(client, 10)]
            await client.commit()
    assert sorted(seen) == [(part, offset) for part in range(2) for offset in range(20)]


async def test_commit_in_the_background(bootstrap, group, topic):
    async with consumer(bootstrap, topic, group_id=group) as client:
        await read(client, 40)
        commits = [asyncio.create_task(client.commit()) for _ in range(3)]
        await asyncio.gather(*commits)
    assert await committed(bootstrap, group, topic) == [20, 20]


async def test_without_commit_the_same_again(bootstrap, group, topic):
    for _ in range(2):
        async with consumer(bootstrap, topic, group_id=group) as client:
            assert len(await read(client, 40)) == 40


async def test_auto_commit(bootstrap, group, topic):
    async with consumer(
        bootstrap, topic, group_id=group, enable_auto_commit=True, auto_commit_interval_ms=100
    ) as client:
        await read(client, 40)

        async def stored():
            return await committed(bootstrap, group, topic) == [20, 20]

        await eventually(stored, "auto commit")


async def test_auto_commit_on_stop(bootstrap, group, topic):
    async with consumer(
        bootstrap, topic, group_id=group, enable_auto_commit=True, auto_commit_interval_ms=600_000
    ) as client:
        await read(client, 40)
        assert await committed(bootstrap, group, topic) == [None, None]
    assert await committed(bootstrap, group, topic) == [20, 20]


async def test_seek_to_committed(bootstrap, group, topic):
    place = TopicPartition(topic, 0)
    async with consumer(bootstrap, group_id=group) as client:
        client.assign([place])
        await client.commit({place: 15})
        assert len(await read(client, 5)) == 5
        await client.seek_to_committed()
        assert [record.offset for record in await read(client, 5)] == list(range(15, 20))


async def test_committed_offset_out_of_range(bootstrap, group, topic):
    place = TopicPartition(topic, 0)
    async with consumer(bootstrap, group_id=group) as client:
        client.assign([place])
        await client.commit({place: 5000})
    async with consumer(bootstrap, group_id=group) as client:
        client.assign([place])
        assert (await client.getone()).offset == 0
