"""What the tests of this folder share: started clients, and reading and writing to the end."""

import asyncio
import time
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import for_code

from broker_suite import unique

CODECS = [None, "gzip", "snappy", "lz4", "zstd"]


async def eventually(condition, what, seconds=20.0):
    """Awaits `condition` again and again until it gives something true, and returns that."""
    deadline = time.monotonic() + seconds
    while True:
        result = condition()
        if asyncio.iscoroutine(result):
            result = await result
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what() if callable(what) else what}")
        await asyncio.sleep(0.02)


@asynccontextmanager
async def opened(client):
    await client.start()
    try:
        yield client
    finally:
        await (client.close() if isinstance(client, AIOKafkaAdminClient) else client.stop())


def admin_client(bootstrap):
    return opened(AIOKafkaAdminClient(bootstrap_servers=bootstrap))


def producer(bootstrap, **settings):
    return opened(AIOKafkaProducer(bootstrap_servers=bootstrap, **settings))


def consumer(bootstrap, *topics, **settings):
    """A consumer that never commits unless told to."""
    defaults = {
        "bootstrap_servers": bootstrap,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "fetch_max_wait_ms": 100,
    }
    return opened(AIOKafkaConsumer(*topics, **(defaults | settings)))


async def create_topic(admin, partitions=1, prefix="topic", **config):
    name = unique(prefix)
    configs = {key.replace("_", "."): value for key, value in config.items()}
    response = await admin.create_topics([NewTopic(name, partitions, 1, topic_configs=configs)])
    check(response.topic_errors)
    await await_topic(admin, name, partitions)
    return name


async def await_topic(admin, name, partitions):
    """Kafka may show a new topic some milliseconds after it has confirmed its creation."""

    async def led():
        (topic,) = await admin.describe_topics([name])
        leaders = [part["leader"] for part in topic["partitions"]]
        return topic["error_code"] == 0 and len(leaders) == partitions and -1 not in leaders

    await eventually(led, f"{name} has {partitions} partitions with a leader")


def check(topic_errors):
    """Raises the first error of an answer that has (topic, error code, ...) for each topic."""
    for _, code, *_ in topic_errors:
        if code:
            raise for_code(code)


async def deliver(client, records):
    """Sends records, given as keyword arguments of send(), and returns their metadata."""
    return await asyncio.gather(*[await client.send(**record) for record in records])


async def read(client, count, seconds=20.0):
    """The next `count` records, and never more than that."""
    records = []
    async with asyncio.timeout(seconds):
        while len(records) < count:
            found = await client.getmany(timeout_ms=200, max_records=count - len(records))
            records += [record for batch in found.values() for record in batch]
    return records


async def read_topic(bootstrap, topic, count, partitions=1, **settings):
    """Reads a topic from its beginning and makes sure that nothing follows."""
    places = [TopicPartition(topic, part) for part in range(partitions)]
    async with consumer(bootstrap, **settings) as client:
        client.assign(places)
        await client.seek_to_beginning(*places)
        records = await read(client, count)
        ends = await client.end_offsets(places)
        for place in places:
            assert await client.position(place) == ends[place]
    return records
