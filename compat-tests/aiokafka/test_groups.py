"""Consumer groups: who gets which partition as members come and go."""

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import NewPartitions
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import InconsistentGroupProtocolError, InvalidSessionTimeoutError

from broker_suite import unique
from clients import deliver, producer
from members import Member, await_received, await_shares


class Feed:
    """Fills every partition of some topics, a number of records at a time."""

    def __init__(self, client, topics, partitions):
        self._client = client
        self._places = [(topic, part) for topic in topics for part in range(partitions)]
        self.count = 0

    async def add(self, per_partition):
        await deliver(
            self._client,
            [
                {"topic": topic, "partition": part, "value": b"v"}
                for topic, part in self._places
                for _ in range(per_partition)
            ],
        )
        self.count += per_partition * len(self._places)


@pytest.mark.slow
@pytest.mark.parametrize(
    "assignor", [RangePartitionAssignor, RoundRobinPartitionAssignor, StickyPartitionAssignor]
)
async def test_members_join_and_leave(bootstrap, admin, new_topic, assignor):
    """Every record is read exactly once although members come and go all the time."""
    topics, group = [await new_topic(6), await new_topic(6)], unique("group")

    async def join():
        member = Member(bootstrap, group, topics, partition_assignment_strategy=[assignor])
        return await member.start()

    async with producer(bootstrap) as client:
        feed = Feed(client, topics, 6)
        await feed.add(20)
        members = [await join()]
        await await_shares(members, [12])
        members.append(await join())
        await feed.add(20)
        await await_shares(members, [6, 6])
        members.append(await join())
        await feed.add(20)
        await await_shares(members, [4, 4, 4])

        await members[1].close()
        await feed.add(20)
        remaining = [members[0], members[2]]
        await await_shares(remaining, [6, 6])
        await members[0].close()
        await feed.add(20)
        await await_shares([members[2]], [12])
        await await_received(members, feed.count)
        await members[2].close()
    offsets = await admin.list_consumer_group_offsets(group)
    assert {place: found.offset for place, found in offsets.items()} == {
        TopicPartition(topic, part): 100 for topic in topics for part in range(6)
    }


async def test_more_members_than_partitions(bootstrap, new_topic):
    topic, group = await new_topic(1), unique("group")
    members = [await Member(bootstrap, group, [topic]).start() for _ in range(2)]
    await await_shares(members, [0, 1])
    owner, idle = sorted(members, key=lambda member: -len(member.owned))
    await owner.close()
    await await_shares([idle], [1])
    await idle.close()


async def test_subscription_by_pattern(bootstrap, new_topic):
    prefix = unique("pattern")
    for suffix in ("a", "b"):
        await new_topic(prefix=f"{prefix}-{suffix}")
    member = Member(bootstrap, unique("group"), pattern=f"^{prefix}-.*", metadata_max_age_ms=300)
    await member.start()
    await await_shares([member], [2])
    await new_topic(prefix=f"{prefix}-c")
    await await_shares([member], [3])
    await member.close()


async def test_partitions_are_added(bootstrap, admin, new_topic):
    topic = await new_topic(1)
    member = await Member(bootstrap, unique("group"), [topic], metadata_max_age_ms=300).start()
    await await_shares([member], [1])
    await admin.create_partitions({topic: NewPartitions(3)})
    await await_shares([member], [3])
    await member.close()


@pytest.mark.slow
async def test_static_member_comes_back(bootstrap, new_topic):
    """A static member that restarts within its session gets its partitions back, and nobody else is
    disturbed (KIP-345)."""
    topic, group = await new_topic(6), unique("group")

    async def join(instance):
        return await Member(bootstrap, group, [topic], group_instance_id=instance).start()

    members = [await join(f"instance-{number}") for number in range(3)]
    await await_shares(members, [2, 2, 2])
    before = set(members[1].owned)
    calm = [member.assignments for member in (members[0], members[2])]
    await members[1].close()
    back = await join("instance-1")
    await await_shares([back], [2])
    assert back.owned == before
    async with producer(bootstrap) as client:
        feed = Feed(client, [topic], 6)
        await feed.add(10)
        await await_received([members[0], back, members[2]], feed.count)
    assert [member.assignments for member in (members[0], members[2])] == calm
    for member in (members[0], members[2], back):
        await member.close()


async def test_inconsistent_strategy(bootstrap, new_topic):
    topic, group = await new_topic(1), unique("group")
    first = Member(
        bootstrap, group, [topic], partition_assignment_strategy=[RangePartitionAssignor]
    )
    await first.start()
    await await_shares([first], [1])
    other = Member(
        bootstrap, group, [topic], partition_assignment_strategy=[StickyPartitionAssignor]
    )
    with pytest.raises(InconsistentGroupProtocolError):
        await other.start()
    await first.close()


async def test_session_timeout_out_of_bounds(bootstrap, new_topic):
    member = Member(bootstrap, unique("group"), [await new_topic()], session_timeout_ms=1000)
    with pytest.raises(InvalidSessionTimeoutError):
        await member.start()
