"""aiokafka in the checks of keyed delivery (python-common/keyed_group.py). These are not asynchronous:
everything of aiokafka lives in an event loop in a thread of its own."""

import asyncio
import threading

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import IllegalStateError
from aiokafka.structs import OffsetAndMetadata

from clients import admin_client, create_topic, deliver
from keyed_place import SESSION_SECONDS, Delivery

TRAITS = {
    "commits_in_work": True,
    "fetches_behind": False,
    "in_hand_max": 256,
    "commits_in_rebalance": False,
}


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self):
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def begin(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def run(self, coroutine):
        return self.begin(coroutine).result(30)

    def close(self):
        self._loop.call_soon_threadsafe(self._loop.stop)


def new_topic(bootstrap, partitions, **config):
    async def create():
        async with admin_client(bootstrap) as admin:
            return await create_topic(admin, partitions, prefix="keyed", **config)

    return asyncio.run(create())


class Sender:
    def __init__(self, bootstrap):
        self._loop = Loop()
        self._client = self._loop.run(self._open(bootstrap))

    async def _open(self, bootstrap):
        # Else a round whose answer is lost with the broker is in the log twice.
        client = AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True)
        await client.start()
        return client

    def send(self, topic, records):
        self._loop.run(self._send(topic, records))

    async def _send(self, topic, records):
        # deliver() calls send() in order and waits for all of them.
        await deliver(
            self._client,
            [
                {"topic": topic, "key": key.encode(), "value": str(number).encode()}
                for key, number in records
            ],
        )

    def close(self):
        self._loop.run(self._client.stop())
        self._loop.close()


open_sender = Sender


def join(place):
    loop = Loop()
    leaving = threading.Event()
    running = loop.begin(consume(place, leaving))

    def leave():
        leaving.set()
        running.result(30)
        loop.close()

    return leave


async def consume(place, leaving):
    client = AIOKafkaConsumer(
        place.topic,
        bootstrap_servers=place.bootstrap,
        group_id=place.group,
        client_id=f"aiokafka-{place.name}",
        auto_offset_reset="earliest",
        enable_auto_commit=place.own_commits,
        auto_commit_interval_ms=300,
        session_timeout_ms=SESSION_SECONDS * 1000,
        heartbeat_interval_ms=300,
        fetch_max_wait_ms=100,
    )
    try:
        await client.start()
        while not leaving.is_set():
            await handle_some(client, place, leaving)
    except Exception as error:  # the check looks at it
        place.fail(error)
    finally:
        await client.stop()


async def handle_some(client, place, leaving):
    """Hands over what is polled at once; when the member is to leave, the rest is given back."""
    handled = {}
    # As many as this come again if the partitions are lost meanwhile.
    found = await client.getmany(timeout_ms=100, max_records=50)
    for where, records in found.items():
        for record in records:
            if leaving.is_set():
                break
            number = int(record.value)
            delivery = Delivery(record.key.decode(), number, where.partition, record.offset)
            # The client goes on in the background while the handler runs, as with an asynchronous one.
            await asyncio.to_thread(place.handle, delivery)
            handled[where] = OffsetAndMetadata(record.offset + 1, "")
            if place.commit_each:
                await commit(client, {where: handled.pop(where)})
    if handled and not place.own_commits:
        await commit(client, handled)


async def commit(client, offsets):
    """Each partition alone, because those that were lost during a handler are refused."""
    for where, offset in offsets.items():
        try:
            await client.commit({where: offset})
        except IllegalStateError:
            # Comes again, to this member.
            pass


def lag(bootstrap, group, topic, partitions):
    return asyncio.run(lag_of(bootstrap, group, topic, partitions))


async def lag_of(bootstrap, group, topic, partitions):
    places = [TopicPartition(topic, part) for part in range(partitions)]
    reader = AIOKafkaConsumer(bootstrap_servers=bootstrap)
    await reader.start()
    try:
        async with admin_client(bootstrap) as admin:
            committed = await admin.list_consumer_group_offsets(group)
        ends = await reader.end_offsets(places)
    finally:
        await reader.stop()
    # As kafka-consumer-groups: a partition without an offset has no lag of its own to show.
    return sum(
        ends[place] - committed[place].offset
        for place in places
        if place in committed and committed[place].offset >= 0
    )
