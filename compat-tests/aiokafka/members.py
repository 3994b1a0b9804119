"""Members of a consumer group, each polling in a task of its own."""

import asyncio
from collections import Counter

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka.errors import IllegalStateError

from clients import eventually


class Member(ConsumerRebalanceListener):
    """Consumes `topics` until close(). It commits what it has received before partitions are taken
    from it, so no other member sees those records again; aiokafka itself gives out no record
    between that and the end of the rebalance."""

    def __init__(self, bootstrap, group, topics=(), pattern=None, **settings):
        self.received = []
        self.owned = set()
        self.assignments = 0
        self._topics = topics
        self._pattern = pattern
        self._closing = False
        self._task = None
        self._client = AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            fetch_max_wait_ms=100,
            retry_backoff_ms=50,
            heartbeat_interval_ms=200,
            **({"session_timeout_ms": 6000} | settings),
        )

    async def start(self):
        self._client.subscribe(self._topics, pattern=self._pattern, listener=self)
        try:
            await self._client.start()
        except BaseException:
            await self._client.stop()
            raise
        self._task = asyncio.create_task(self._run())
        return self

    async def close(self):
        """Leaves the group; everything received is committed."""
        self._closing = True
        await self._task
        if self.owned:
            await self._client.commit()
        await self._client.stop()
        self.owned = set()

    def check(self):
        """Raises what ended the task, if anything did."""
        if self._task.done():
            self._task.result()

    async def _run(self):
        while not self._closing:
            found = await self._client.getmany(timeout_ms=20)
            for records in found.values():
                self.received += [(r.topic, r.partition, r.offset) for r in records]

    async def on_partitions_revoked(self, revoked):
        if revoked:
            try:
                await self._client.commit()
            except IllegalStateError:
                # The set of topics has changed; aiokafka then has forgotten its assignment.
                assert self._pattern
        self.owned = set()

    async def on_partitions_assigned(self, assigned):
        self.assignments += 1
        self.owned = set(assigned)


async def await_shares(members, shares):
    """Waits until the members own so many partitions each (in any order), none of them twice."""

    def shared():
        for member in members:
            member.check()
        owned = [member.owned for member in members]
        apart = len(set().union(*owned)) == sum(map(len, owned))
        return apart and sorted(map(len, owned)) == sorted(shares)

    await eventually(shared, lambda: f"shares {shares}: {[len(m.owned) for m in members]}", 30)


async def await_received(members, count):
    """Waits for `count` records in all and makes sure that none was read twice."""

    def received():
        for member in members:
            member.check()
        return sum(len(member.received) for member in members) >= count

    await eventually(received, lambda: f"{count} records: {[len(m.received) for m in members]}", 30)
    seen = Counter(place for member in members for place in member.received)
    assert [place for place, times in seen.items() if times > 1] == []
    assert len(seen) == count
