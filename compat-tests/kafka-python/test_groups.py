"""Consumer groups: who gets which partition as members come and go."""

import threading
from collections import Counter

import pytest
from kafka import ConsumerRebalanceListener, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from broker_suite import unique, until
from clients import POLL_MS, consumer, deliver, producer


class Member(ConsumerRebalanceListener):
    """Consumes `topics` in a thread of its own until close(). The client commits by itself before
    partitions are taken from it, and when it is closed: its listeners may not call commit()."""

    def __init__(self, bootstrap, group, topics, **settings):
        self.received = []
        self.owned = set()
        self.assignments = 0
        self.errors = []
        self._closing = threading.Event()
        self._client = consumer(
            bootstrap,
            *topics,
            listener=self,
            group_id=group,
            session_timeout_ms=6000,
            heartbeat_interval_ms=200,
            enable_auto_commit=True,
            auto_commit_interval_ms=600_000,
            **settings,
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def leave(self):
        """Has the member leave the group after its current poll."""
        self._closing.set()

    def close(self):
        """Waits until the member has left; everything received is committed."""
        self.leave()
        self._thread.join(20)
        assert not self._thread.is_alive(), "a member did not close within 20 s"
        assert self.errors == []

    def _run(self):
        try:
            while not self._closing.is_set():
                for records in self._client.poll(timeout_ms=POLL_MS).values():
                    self.received += [(r.topic, r.partition, r.offset) for r in records]
            self._client.close()
        except Exception as error:  # the test looks at it
            self.errors.append(error)

    def on_partitions_revoked(self, revoked):
        self.owned -= set(revoked)

    def on_partitions_assigned(self, assigned):
        self.assignments += 1
        self.owned |= set(assigned)


def await_shares(members, shares):
    """Waits until the members own so many partitions each (in any order), none of them twice."""

    def shared():
        owned = [set(member.owned) for member in members]
        apart = len(set().union(*owned)) == sum(map(len, owned))
        return apart and sorted(map(len, owned)) == sorted(shares)

    until(
        shared,
        lambda: f"shares {shares}: {[(len(m.owned), m.errors) for m in members]}",
        30,
    )


def await_received(members, count):
    """Waits for `count` records in all and makes sure that none was read twice."""
    until(
        lambda: sum(len(member.received) for member in members) >= count,
        lambda: f"{count} records: {[(len(m.received), m.errors) for m in members]}",
        30,
    )
    seen = Counter(place for member in members for place in member.received)
    assert [place for place, times in seen.items() if times > 1] == []
    assert len(seen) == count


def feed(client, topics, partitions, per_partition):
    records = [
        {"topic": topic, "partition": part, "value": b"v"}
        for topic in topics
        for part in range(partitions)
        for _ in range(per_partition)
    ]
    return len(deliver(client, records))


@pytest.mark.slow
@pytest.mark.parametrize(
    "assignor",
    [
        RangePartitionAssignor,
        RoundRobinPartitionAssignor,
        StickyPartitionAssignor,
        CooperativeStickyAssignor,
    ],
)
def test_members_join_and_leave(bootstrap, admin, new_topic, assignor):
    """Every record is read exactly once although members come and go all the time."""
    topics, group = [new_topic(6), new_topic(6)], unique("group")
    client = producer(bootstrap)

    def join():
        return Member(bootstrap, group, topics, partition_assignment_strategy=[assignor])

    count = feed(client, topics, 6, 20)
    members = [join()]
    await_shares(members, [12])
    members.append(join())
    count += feed(client, topics, 6, 20)
    await_shares(members, [6, 6])
    members.append(join())
    count += feed(client, topics, 6, 20)
    await_shares(members, [4, 4, 4])

    members[1].leave()
    count += feed(client, topics, 6, 20)
    members[1].close()
    await_shares([members[0], members[2]], [6, 6])
    members[0].leave()
    count += feed(client, topics, 6, 20)
    members[0].close()
    await_shares([members[2]], [12])
    await_received(members, count)
    members[2].close()
    client.close()
    offsets = admin.list_group_offsets(group)[group]
    assert {place: found.offset for place, found in offsets.items()} == {
        TopicPartition(topic, part): 100 for topic in topics for part in range(6)
    }


@pytest.mark.slow
def test_static_member_comes_back(bootstrap, new_topic):
    """A static member that restarts within its session gets its partitions back, and nobody else is
    disturbed (KIP-345)."""
    topic, group = new_topic(6), unique("group")

    def join(instance):
        return Member(bootstrap, group, [topic], group_instance_id=instance)

    members = [join(f"instance-{number}") for number in range(3)]
    await_shares(members, [2, 2, 2])
    before = set(members[1].owned)
    calm = [member.assignments for member in (members[0], members[2])]
    members[1].close()
    back = join("instance-1")
    await_shares([back], [2])
    assert back.owned == before
    client = producer(bootstrap)
    await_received([members[0], back, members[2]], feed(client, [topic], 6, 10))
    client.close()
    assert [member.assignments for member in (members[0], members[2])] == calm
    for member in (members[0], members[2], back):
        member.leave()
    for member in (members[0], members[2], back):
        member.close()
