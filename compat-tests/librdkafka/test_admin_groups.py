"""AdminClient: consumer groups and their offsets."""

import pytest
from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, TopicPartition

from broker_suite import unique, until
from clients import consumer, deliver, error_of, producer, read
from members import Member, await_shares


@pytest.fixture
def topic(bootstrap, new_topic):
    name = new_topic(3)
    records = [{"topic": name, "partition": n % 3, "value": str(n)} for n in range(30)]
    deliver(producer(bootstrap), records)
    return name


@pytest.fixture
def active(bootstrap, topic):
    """A group with one member that has the whole topic."""
    group = unique("active")
    member = Member(bootstrap, group, [topic], client_id="the-member")
    await_shares([member], [3])
    yield group
    member.close()


@pytest.fixture
def empty(bootstrap, topic):
    """A group without members that has committed offset 4 of partition 0 and 5 of partition 1."""
    group = unique("empty")
    client = consumer(bootstrap, group)
    places = [TopicPartition(topic, 0, 4), TopicPartition(topic, 1, 5, "note")]
    client.commit(offsets=places, asynchronous=False)
    client.close()
    return group


def describe(admin, group, **options):
    return admin.describe_consumer_groups([group], **options)[group].result(20)


def offsets(admin, group, places=None):
    request = ConsumerGroupTopicPartitions(group, places)
    found = admin.list_consumer_group_offsets([request])[group].result(20)
    return {place.partition: place.offset for place in found.topic_partitions}


def alter(admin, group, places):
    request = ConsumerGroupTopicPartitions(group, places)
    result = admin.alter_consumer_group_offsets([request])[group].result(20)
    return [place.error.name() if place.error else None for place in result.topic_partitions]


def listed(admin, **options):
    result = admin.list_consumer_groups(**options).result(20)
    assert result.errors == []
    return {group.group_id: group for group in result.valid}


def test_list(admin, active, empty):
    groups = listed(admin)
    assert groups[active].state == ConsumerGroupState.STABLE
    assert groups[empty].state == ConsumerGroupState.EMPTY
    assert not groups[active].is_simple_consumer_group
    assert groups[empty].is_simple_consumer_group


def test_list_by_state(admin, active, empty):
    stable = listed(admin, states={ConsumerGroupState.STABLE})
    assert active in stable
    assert empty not in stable
    idle = listed(admin, states={ConsumerGroupState.EMPTY})
    assert active not in idle
    assert empty in idle


def test_describe_active(admin, active, topic):
    group = describe(admin, active)
    assert group.group_id == active
    assert group.state == ConsumerGroupState.STABLE
    assert group.partition_assignor == "range"
    assert group.coordinator.port > 0
    (member,) = group.members
    assert member.client_id == "the-member"
    assert member.member_id.startswith("the-member-")
    assert member.host
    assigned = [(place.topic, place.partition) for place in member.assignment.topic_partitions]
    assert sorted(assigned) == [(topic, part) for part in range(3)]


def test_describe_empty_and_unknown(admin, empty):
    group = describe(admin, empty)
    assert (group.state, group.members) == (ConsumerGroupState.EMPTY, [])
    unknown = describe(admin, unique("missing"))
    assert (unknown.state, unknown.members) == (ConsumerGroupState.DEAD, [])


def test_describe_several(admin, active, empty):
    futures = admin.describe_consumer_groups([active, empty])
    states = [futures[group].result(20).state for group in (active, empty)]
    assert states == [ConsumerGroupState.STABLE, ConsumerGroupState.EMPTY]


def test_describe_with_operations(admin, empty):
    group = describe(admin, empty, include_authorized_operations=True)
    assert {"READ", "DELETE", "DESCRIBE"} <= {op.name for op in group.authorized_operations}


def test_delete(admin, empty):
    admin.delete_consumer_groups([empty])[empty].result(20)
    assert empty not in listed(admin)
    assert offsets(admin, empty) == {}


def test_delete_errors(admin, active):
    def delete(group):
        admin.delete_consumer_groups([group])[group].result(20)

    assert error_of(lambda: delete(active)) == "NON_EMPTY_GROUP"
    assert error_of(lambda: delete(unique("missing"))) == "GROUP_ID_NOT_FOUND"


def test_list_offsets(admin, empty, topic):
    assert offsets(admin, empty) == {0: 4, 1: 5}
    some = [TopicPartition(topic, 1), TopicPartition(topic, 2)]
    assert offsets(admin, empty, some) == {1: 5, 2: -1001}
    assert offsets(admin, unique("missing")) == {}
    request = ConsumerGroupTopicPartitions(empty, [TopicPartition(topic, 1)])
    found = admin.list_consumer_group_offsets([request])[empty].result(20)
    assert found.topic_partitions[0].metadata == "note"


def test_alter_offsets(bootstrap, admin, empty, topic):
    places = [TopicPartition(topic, 0, 9), TopicPartition(topic, 2, 8)]
    assert alter(admin, empty, places) == [None, None]
    assert offsets(admin, empty) == {0: 9, 1: 5, 2: 8}
    reader = consumer(bootstrap, empty)
    reader.subscribe([topic])
    found = sorted((message.partition(), message.offset()) for message in read(reader, 8))
    assert found == [(0, 9)] + [(1, n) for n in range(5, 10)] + [(2, 8), (2, 9)]
    reader.close()


def test_alter_offsets_of_a_new_group(admin, topic):
    group = unique("group")
    assert alter(admin, group, [TopicPartition(topic, 0, 3)]) == [None]
    assert offsets(admin, group) == {0: 3}


def test_alter_offsets_errors(admin, active, empty, topic):
    place = TopicPartition(topic, 0, 3)
    assert alter(admin, active, [place]) == ["UNKNOWN_MEMBER_ID"]
    missing = TopicPartition(unique("missing"), 0, 3)
    assert alter(admin, empty, [missing]) == ["UNKNOWN_TOPIC_OR_PART"]


def test_offsets_go_with_their_topic(admin, empty, topic):
    admin.delete_topics([topic])[topic].result(20)
    until(lambda: offsets(admin, empty) == {}, "the offsets of a deleted topic are gone")


def test_group_goes_from_stable_to_empty(bootstrap, admin, topic):
    group = unique("group")
    member = Member(bootstrap, group, [topic])
    await_shares([member], [3])
    assert describe(admin, group).state == ConsumerGroupState.STABLE
    member.close()
    assert describe(admin, group).state == ConsumerGroupState.EMPTY
    admin.delete_consumer_groups([group])[group].result(20)
    assert describe(admin, group).state == ConsumerGroupState.DEAD
