"""Consumer groups: who gets which partition as members come and go."""

import pytest
from confluent_kafka import ConsumerGroupState, TopicPartition
from confluent_kafka.admin import NewPartitions

from broker_suite import unique, until
from clients import consumer, deliver, error_of, producer, read
from members import MEMBER_SETTINGS, Member, assert_no_trouble, await_received, await_shares


class Feed:
    """Fills every partition of some topics, a number of records at a time."""

    def __init__(self, bootstrap, topics, partitions):
        self._client = producer(bootstrap)
        self._places = [(topic, part) for topic in topics for part in range(partitions)]
        self.count = 0

    def add(self, per_partition):
        deliver(
            self._client,
            [
                {"topic": topic, "partition": part, "value": b"v"}
                for topic, part in self._places
                for _ in range(per_partition)
            ],
        )
        self.count += per_partition * len(self._places)


def committed(bootstrap, group, topics, partitions):
    reader = consumer(bootstrap, group)
    places = [TopicPartition(topic, part) for topic in topics for part in range(partitions)]
    offsets = [place.offset for place in reader.committed(places, timeout=10)]
    reader.close()
    return offsets


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_members_join_and_leave(bootstrap, admin, new_topic, strategy):
    """Every record is read exactly once although members come and go all the time."""
    topics, group = [new_topic(6), new_topic(6)], unique("group")
    feed = Feed(bootstrap, topics, 6)

    def join():
        return Member(bootstrap, group, topics, partition_assignment_strategy=strategy)

    feed.add(20)
    members = [join()]
    await_shares(members, [12])
    members.append(join())
    feed.add(20)
    await_shares(members, [6, 6])
    members.append(join())
    feed.add(20)
    await_shares(members, [4, 4, 4])
    described = admin.describe_consumer_groups([group])[group].result(20)
    assert described.state == ConsumerGroupState.STABLE
    assert described.partition_assignor == strategy
    assert len(described.members) == 3

    members[1].close()
    feed.add(20)
    remaining = [members[0], members[2]]
    await_shares(remaining, [6, 6])
    members[0].close()
    feed.add(20)
    await_shares([members[2]], [12])
    await_received(members, feed.count)
    members[2].close()
    assert_no_trouble(members)
    assert committed(bootstrap, group, topics, 6) == [100] * 12


@pytest.mark.slow
@pytest.mark.thorough
def test_members_join_at_once(bootstrap, new_topic):
    topic, group = new_topic(8), unique("group")
    feed = Feed(bootstrap, [topic], 8)
    feed.add(50)
    members = [Member(bootstrap, group, [topic]) for _ in range(4)]
    await_shares(members, [2, 2, 2, 2])
    feed.add(50)
    await_received(members, feed.count)
    for member in members:
        member.close()
    assert_no_trouble(members)


def test_more_members_than_partitions(bootstrap, new_topic):
    topic, group = new_topic(1), unique("group")
    feed = Feed(bootstrap, [topic], 1)
    feed.add(10)
    members = [Member(bootstrap, group, [topic]) for _ in range(2)]
    await_shares(members, [0, 1])
    await_received(members, 10)
    owner, idle = sorted(members, key=lambda member: -len(member.owned))
    owner.close()
    await_shares([idle], [1])
    feed.add(10)
    await_received(members, 20)
    idle.close()
    assert_no_trouble(members)


def test_cooperative_members_keep_their_partitions(bootstrap, new_topic):
    """A member that joins takes over some partitions, the others go on undisturbed (KIP-429)."""
    topic, group = new_topic(4), unique("group")
    settings = {"partition_assignment_strategy": "cooperative-sticky"}
    first = Member(bootstrap, group, [topic], **settings)
    await_shares([first], [4])
    second = Member(bootstrap, group, [topic], **settings)
    await_shares([first, second], [2, 2])
    assert first.revocations == 1
    first.close()
    second.close()
    assert_no_trouble([first, second])


def test_members_with_different_topics(bootstrap, new_topic):
    topics, group = [new_topic(2), new_topic(2)], unique("group")
    members = [Member(bootstrap, group, [topic]) for topic in topics]
    await_shares(members, [2, 2])
    until(
        lambda: (
            [{topic for topic, _ in member.owned} for member in members]
            == [{topics[0]}, {topics[1]}]
        ),
        "each member has its own topic",
    )
    for member in members:
        member.close()
    assert_no_trouble(members)


def test_upgrade_of_strategy(bootstrap, admin, new_topic):
    """The group takes the strategy that all of its members know."""
    topic, group = new_topic(4), unique("group")
    both = Member(bootstrap, group, [topic], partition_assignment_strategy="roundrobin,range")
    await_shares([both], [4])
    only = Member(bootstrap, group, [topic], partition_assignment_strategy="range")
    await_shares([both, only], [2, 2])
    described = admin.describe_consumer_groups([group])[group].result(20)
    assert described.partition_assignor == "range"
    both.close()
    only.close()
    assert_no_trouble([both, only])


def test_inconsistent_strategy(bootstrap, new_topic):
    topic, group = new_topic(1), unique("group")
    first = Member(bootstrap, group, [topic], partition_assignment_strategy="range")
    await_shares([first], [1])
    other = Member(bootstrap, group, [topic], partition_assignment_strategy="cooperative-sticky")
    until(lambda: other.errors, "the error")
    assert other.errors[0].name() == "INCONSISTENT_GROUP_PROTOCOL"
    other.close()
    first.close()
    assert_no_trouble([first])


@pytest.mark.parametrize("session_ms", [1000, 3_600_000])
def test_session_timeout_out_of_bounds(bootstrap, new_topic, session_ms):
    member = Member(
        bootstrap,
        unique("group"),
        [new_topic()],
        **{"session.timeout.ms": session_ms, "max.poll.interval.ms": 3_600_000},
    )
    until(lambda: member.errors, "the error")
    assert member.errors[0].name() == "INVALID_SESSION_TIMEOUT"
    member.close()


def test_subscription_by_pattern(bootstrap, admin, new_topic):
    prefix = unique("pattern")
    matching = [new_topic(prefix=f"{prefix}-a"), new_topic(prefix=f"{prefix}-b")]
    new_topic(prefix=f"other-{prefix}")
    member = Member(
        bootstrap, unique("group"), [f"^{prefix}-.*"], topic_metadata_refresh_interval_ms=300
    )
    await_shares([member], [2])
    matching.append(new_topic(prefix=f"{prefix}-c"))
    await_shares([member], [3])
    assert {topic for topic, _ in member.owned} == set(matching)
    admin.delete_topics([matching[0]])[matching[0]].result(20)
    await_shares([member], [2])
    member.close()


def test_partitions_are_added(bootstrap, admin, new_topic):
    topic = new_topic(1)
    member = Member(bootstrap, unique("group"), [topic], topic_metadata_refresh_interval_ms=300)
    await_shares([member], [1])
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(20)
    await_shares([member], [3])
    member.close()
    assert_no_trouble([member])


def test_change_of_subscription(bootstrap, new_topic):
    topics, group = [new_topic(), new_topic()], unique("group")
    for topic in topics:
        deliver(producer(bootstrap), [{"topic": topic, "value": topic}])
    reader = consumer(bootstrap, group, **MEMBER_SETTINGS)
    for topic in topics:
        reader.subscribe([topic])
        assert read(reader, 1)[0].topic() == topic
    reader.unsubscribe()
    until(lambda: reader.poll(0.05) is None and reader.assignment() == [], "no assignment", pause=0)
    reader.close()


@pytest.mark.slow
@pytest.mark.thorough
def test_member_that_stops_polling_is_replaced(bootstrap, new_topic):
    """max.poll.interval.ms is over, the member leaves by itself and another one takes over."""
    topic, group = new_topic(2), unique("group")
    stuck = consumer(bootstrap, group, **{**MEMBER_SETTINGS, "max.poll.interval.ms": 6000})
    stuck.subscribe([topic])
    until(lambda: stuck.poll(0.05) or len(stuck.assignment()) == 2, "assignment", pause=0)
    other = Member(bootstrap, group, [topic])
    await_shares([other], [2])
    other.close()
    assert_no_trouble([other])
    assert error_of(lambda: read(stuck, 1)) == "_MAX_POLL_EXCEEDED"
    stuck.close()


@pytest.mark.slow
def test_static_member_comes_back(bootstrap, admin, new_topic):
    """A static member that restarts within its session gets its partitions back, and nobody else is
    disturbed (KIP-345)."""
    topic, group = new_topic(6), unique("group")
    feed = Feed(bootstrap, [topic], 6)
    feed.add(10)

    def join(instance):
        return Member(bootstrap, group, [topic], **{"group.instance.id": instance})

    members = [join(f"instance-{number}") for number in range(3)]
    await_shares(members, [2, 2, 2])
    described = admin.describe_consumer_groups([group])[group].result(20)
    instances = sorted(member.group_instance_id for member in described.members)
    assert instances == ["instance-0", "instance-1", "instance-2"]

    await_received(members, feed.count)
    calm = [(m.assignments, m.revocations) for m in (members[0], members[2])]
    before = set(members[1].owned)
    members[1].close()
    back = join("instance-1")
    await_shares([back], [2])
    assert back.owned == before
    feed.add(10)
    await_received([*members, back], feed.count)
    assert [(m.assignments, m.revocations) for m in (members[0], members[2])] == calm
    for member in (members[0], members[2], back):
        member.close()
    assert_no_trouble([*members, back])


@pytest.mark.slow
@pytest.mark.thorough
def test_static_member_that_stays_away(bootstrap, new_topic):
    """Its partitions are given away when its session is over, not before."""
    topic, group = new_topic(2), unique("group")
    members = [
        Member(bootstrap, group, [topic], **{"group.instance.id": f"instance-{number}"})
        for number in range(2)
    ]
    await_shares(members, [1, 1])
    members[0].close()
    await_shares([members[1]], [2])
    members[1].close()
    assert_no_trouble(members)


def test_static_member_is_fenced(bootstrap, new_topic):
    topic, group = new_topic(1), unique("group")
    settings = {"group.instance.id": "same"}
    first = Member(bootstrap, group, [topic], **settings)
    await_shares([first], [1])
    second = Member(bootstrap, group, [topic], **settings)
    await_shares([second], [1])
    until(lambda: first.errors, "the first one is fenced")
    assert first.errors[0].name() in ("_FATAL", "FENCED_INSTANCE_ID")
    first.close()
    second.close()
    assert_no_trouble([second])
