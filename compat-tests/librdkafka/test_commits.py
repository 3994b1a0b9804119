"""Committed offsets: written in every way the client has, and resumed from."""

import pytest
from confluent_kafka import OFFSET_INVALID, OFFSET_STORED, TopicPartition

from broker_suite import unique, until
from clients import consumer, deliver, error_of, producer, read


@pytest.fixture
def topic(bootstrap, new_topic):
    """Two partitions with twenty records each; the value is the offset."""
    name = new_topic(2)
    records = [{"topic": name, "partition": n % 2, "value": str(n // 2)} for n in range(40)]
    deliver(producer(bootstrap), records)
    return name


@pytest.fixture
def group():
    return unique("group")


@pytest.fixture
def open_consumer(bootstrap, group):
    """Opens consumers of the test's group and closes those that are still open at its end."""
    clients = []

    def create(**settings):
        clients.append(consumer(bootstrap, group, **settings))
        return clients[-1]

    yield create
    for client in clients:
        client.close()


def committed(client, topic, count=2):
    places = client.committed([TopicPartition(topic, part) for part in range(count)], timeout=10)
    return [place.offset for place in places]


def assign(client, topic, partition=0, offset=OFFSET_STORED):
    client.assign([TopicPartition(topic, partition, offset)])


def test_nothing_committed(open_consumer, topic):
    assert committed(open_consumer(), topic) == [OFFSET_INVALID, OFFSET_INVALID]


def test_commit_of_offsets(open_consumer, topic):
    client = open_consumer()
    places = [TopicPartition(topic, 0, 7), TopicPartition(topic, 1, 13)]
    done = client.commit(offsets=places, asynchronous=False)
    assert [(place.partition, place.offset, place.error) for place in done] == [
        (0, 7, None),
        (1, 13, None),
    ]
    assert committed(open_consumer(), topic) == [7, 13]
    # A commit may go back.
    client.commit(offsets=[TopicPartition(topic, 1, 2)], asynchronous=False)
    assert committed(open_consumer(), topic) == [7, 2]


def test_commit_of_message(open_consumer, topic):
    client = open_consumer()
    assign(client, topic)
    message = read(client, 5)[-1]
    client.commit(message=message, asynchronous=False)
    assert committed(client, topic, 1) == [5]


def test_commit_with_metadata(open_consumer, topic):
    client = open_consumer()
    for text in ("a note", "größe", "x" * 4000):
        place = TopicPartition(topic, 0, 3, text)
        client.commit(offsets=[place], asynchronous=False)
        found = open_consumer().committed([TopicPartition(topic, 0)], timeout=10)[0]
        assert (found.offset, found.metadata) == (3, text)


def test_commit_with_leader_epoch(open_consumer, topic):
    client = open_consumer()
    assign(client, topic)
    message = read(client, 1)[0]
    assert message.leader_epoch() is not None
    place = TopicPartition(topic, 0, 1, "", message.leader_epoch())
    client.commit(offsets=[place], asynchronous=False)
    found = open_consumer().committed([TopicPartition(topic, 0)], timeout=10)[0]
    assert found.leader_epoch == message.leader_epoch()


def test_metadata_too_large(open_consumer, topic):
    """offset.metadata.max.bytes is 4096 by default."""
    place = TopicPartition(topic, 0, 3, "x" * 4097)

    def commit():
        open_consumer().commit(offsets=[place], asynchronous=False)

    assert error_of(commit) == "OFFSET_METADATA_TOO_LARGE"


def test_commit_of_unknown_topic(open_consumer):
    place = TopicPartition(unique("missing"), 0, 3)

    def commit():
        open_consumer().commit(offsets=[place], asynchronous=False)

    assert error_of(commit) == "UNKNOWN_TOPIC_OR_PART"


def test_asynchronous_commit(open_consumer, topic):
    reports = []
    client = open_consumer(on_commit=lambda error, places: reports.append((error, places)))
    assign(client, topic)
    read(client, 20)
    client.commit(asynchronous=True)

    def reported():
        client.poll(0.05)
        return reports

    until(reported, "the report", pause=0)
    error, places = reports[0]
    assert error is None
    assert [(place.partition, place.offset) for place in places] == [(0, 20)]
    assert committed(open_consumer(), topic, 1) == [20]


def test_resume_after_restart(open_consumer, topic):
    for expected in (0, 6, 12):
        client = open_consumer()
        assign(client, topic)
        messages = read(client, 6)
        assert [message.offset() for message in messages] == list(range(expected, expected + 6))
        client.commit(asynchronous=False)
        client.close()


def test_subscriber_resumes(open_consumer, topic):
    seen = []
    for _ in range(4):
        client = open_consumer(session_timeout_ms=6000, heartbeat_interval_ms=200)
        client.subscribe([topic])
        seen += [(message.partition(), message.offset()) for message in read(client, 10)]
        client.commit(asynchronous=False)
        client.close()
    assert sorted(seen) == [(part, offset) for part in range(2) for offset in range(20)]


def test_without_commit_the_same_again(open_consumer, topic):
    for _ in range(2):
        client = open_consumer()
        assign(client, topic)
        assert [message.offset() for message in read(client, 20)] == list(range(20))
        client.close()


def test_auto_commit(open_consumer, topic):
    client = open_consumer(enable_auto_commit=True, auto_commit_interval_ms=100)
    client.subscribe([topic])
    read(client, 40)
    other = open_consumer()
    until(lambda: client.poll(0.05) or committed(other, topic) == [20, 20], "auto commit")


def test_auto_commit_on_close(open_consumer, topic):
    client = open_consumer(enable_auto_commit=True, auto_commit_interval_ms=600000)
    client.subscribe([topic])
    read(client, 40)
    assert committed(open_consumer(), topic) == [OFFSET_INVALID, OFFSET_INVALID]
    client.close()
    assert committed(open_consumer(), topic) == [20, 20]


def test_store_offsets(open_consumer, topic):
    client = open_consumer(
        enable_auto_commit=True, auto_commit_interval_ms=600000, enable_auto_offset_store=False
    )
    client.subscribe([topic])
    for message in read(client, 40):
        # Everything was read, only a part of it was processed.
        if message.offset() < 5 * (message.partition() + 1):
            client.store_offsets(message)
    client.close()
    assert committed(open_consumer(), topic) == [5, 10]


def test_store_offsets_by_position(open_consumer, topic):
    client = open_consumer(enable_auto_offset_store=False)
    assign(client, topic)
    read(client, 3)
    client.store_offsets(offsets=[TopicPartition(topic, 0, 2)])
    client.commit(asynchronous=False)
    assert committed(open_consumer(), topic, 1) == [2]


def test_committed_offset_out_of_range(open_consumer, topic):
    client = open_consumer()
    client.commit(offsets=[TopicPartition(topic, 0, 5000)], asynchronous=False)
    assign(client, topic)
    assert read(client, 1)[0].offset() == 0


def test_outsider_may_not_commit_to_an_active_group(open_consumer, topic):
    member = open_consumer()
    member.subscribe([topic])
    read(member, 1)
    place = TopicPartition(topic, 0, 3)

    def commit():
        open_consumer().commit(offsets=[place], asynchronous=False)

    assert error_of(commit) == "UNKNOWN_MEMBER_ID"


def test_groups_are_apart(bootstrap, topic):
    clients = [consumer(bootstrap) for _ in range(3)]
    for number, client in enumerate(clients):
        client.commit(offsets=[TopicPartition(topic, 0, number)], asynchronous=False)
    assert [committed(client, topic, 1) for client in clients] == [[0], [1], [2]]
    for client in clients:
        client.close()


def test_many_partitions(bootstrap, new_topic, open_consumer):
    topic = new_topic(80)
    places = [TopicPartition(topic, part, part * 1000) for part in range(80)]
    open_consumer().commit(offsets=places, asynchronous=False)
    assert committed(open_consumer(), topic, 80) == [part * 1000 for part in range(80)]
