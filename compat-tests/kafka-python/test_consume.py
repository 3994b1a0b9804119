"""Reading, seeking and committing."""

import pytest
from kafka import OffsetAndMetadata, TopicPartition
from kafka.errors import NoOffsetForPartitionError, OffsetOutOfRangeError

from broker_suite import unique, until
from clients import POLL_MS, consumer, deliver, producer, read, read_topic


@pytest.fixture
def numbers(bootstrap, new_topic):
    """A partition whose record at offset n has the value n and the timestamp 1_000_000 + 10 n, in
    many small batches."""
    # A broker may delete records as old as these at any time.
    topic = new_topic(retention_ms="-1")
    client = producer(bootstrap, batch_size=500)
    deliver(
        client,
        [
            {"topic": topic, "value": b"%d" % n, "timestamp_ms": 1_000_000 + 10 * n}
            for n in range(100)
        ],
    )
    client.close()
    return TopicPartition(topic, 0)


@pytest.fixture
def reader(bootstrap, numbers):
    client = consumer(bootstrap, group_id=unique("group"))
    client.assign([numbers])
    yield client
    client.close()


def values(records):
    return [int(record.value) for record in records]


def send_one(bootstrap, place, value):
    client = producer(bootstrap)
    deliver(client, [{"topic": place.topic, "partition": place.partition, "value": value}])
    client.close()


def test_seek(numbers, reader):
    for target in (50, 5, 97, 0):
        reader.seek(numbers, target)
        assert values(read(reader, 3)) == [target, target + 1, target + 2]
    reader.seek_to_beginning()
    assert values(read(reader, 100)) == list(range(100))
    assert reader.position(numbers) == 100
    assert reader.highwater(numbers) == 100


def test_seek_to_end(bootstrap, numbers, reader):
    reader.seek_to_end()
    assert reader.position(numbers) == 100
    send_one(bootstrap, numbers, b"100")
    assert values(read(reader, 1)) == [100]


@pytest.mark.parametrize(("reset", "first"), [("earliest", 0), ("latest", 100)])
def test_offset_out_of_range(bootstrap, numbers, reset, first):
    client = consumer(bootstrap, auto_offset_reset=reset)
    client.assign([numbers])
    client.seek(numbers, 5000)
    if reset == "latest":

        def moved():
            client.poll(timeout_ms=20)
            return client.position(numbers) == first

        until(moved, "the reset", pause=0)
        send_one(bootstrap, numbers, b"100")
    assert values(read(client, 1)) == [first]
    client.close()


def test_no_reset(bootstrap, numbers):
    client = consumer(bootstrap, group_id=unique("group"), auto_offset_reset="none")
    client.assign([numbers])
    with pytest.raises(NoOffsetForPartitionError):
        read(client, 1)
    client.seek(numbers, 5000)
    with pytest.raises(OffsetOutOfRangeError):
        read(client, 1)
    client.close()


def test_pause_and_resume(bootstrap, new_topic):
    topic = new_topic(2)
    places = [TopicPartition(topic, part) for part in range(2)]
    reader = consumer(bootstrap)
    reader.assign(places)
    reader.pause(places[0])
    assert reader.paused() == {places[0]}
    client = producer(bootstrap)
    records = [{"topic": topic, "partition": n % 2, "value": b"%d" % n} for n in range(20)]
    deliver(client, records)
    client.close()
    assert values(read(reader, 10)) == list(range(1, 20, 2))
    reader.resume(places[0])
    assert values(read(reader, 10)) == list(range(0, 20, 2))
    reader.close()


def test_offsets_for_times(numbers, reader):
    def lookup(stamp):
        found = reader.offsets_for_times({numbers: stamp})[numbers]
        return found and (found.offset, found.timestamp)

    assert lookup(0) == (0, 1_000_000)
    assert lookup(1_000_505) == (51, 1_000_510)
    assert lookup(1_000_990) == (99, 1_000_990)
    assert lookup(1_000_991) is None


def test_beginning_and_end(admin, numbers, reader):
    assert reader.beginning_offsets([numbers]) == {numbers: 0}
    assert reader.end_offsets([numbers]) == {numbers: 100}
    admin.delete_records({numbers: 30})
    assert reader.beginning_offsets([numbers]) == {numbers: 30}


@pytest.mark.parametrize("sessions", [True, False])
@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_isolation_and_fetch_sessions(bootstrap, numbers, level, sessions):
    """Incremental fetch sessions (KIP-227) leave out what has not changed."""
    records = read_topic(
        bootstrap,
        numbers.topic,
        100,
        isolation_level=level,
        enable_incremental_fetch_sessions=sessions,
        max_partition_fetch_bytes=700,
    )
    assert values(records) == list(range(100))


def test_fetch_session_with_many_partitions(bootstrap, new_topic):
    topic = new_topic(20)
    reader = consumer(bootstrap)
    reader.assign([TopicPartition(topic, part) for part in range(20)])
    client = producer(bootstrap)
    # One partition after the other has something new while the others are quiet.
    for part in (*range(20), 3, 17, 3):
        deliver(client, [{"topic": topic, "partition": part, "value": b"%d" % part}])
        (record,) = read(reader, 1)
        assert (record.partition, int(record.value)) == (part, part)
    client.close()
    reader.close()


def test_topics(bootstrap, new_topic):
    topics = [new_topic(1), new_topic(4)]
    client = consumer(bootstrap)
    assert set(topics) <= client.topics()
    assert client.partitions_for_topic(topics[1]) == {0, 1, 2, 3}
    client.close()


def test_commit(numbers, reader):
    assert reader.committed(numbers) is None
    reader.commit({numbers: OffsetAndMetadata(7, "a note", -1)})
    assert reader.committed(numbers) == 7
    assert reader.committed(numbers, metadata=True).metadata == "a note"
    # The partition was assigned before that commit, yet its position was not asked for until now.
    assert values(read(reader, 12)) == list(range(7, 19))
    reader.commit()
    assert reader.committed(numbers) == 19


def test_asynchronous_commit(numbers, reader):
    done = []
    read(reader, 9)
    reader.commit_async(callback=lambda offsets, result: done.append((offsets, result)))

    def reported():
        reader.poll(timeout_ms=20)
        return done

    until(reported, "the report", pause=0)
    assert [found.offset for found in done[0][0].values()] == [9]
    assert reader.committed(numbers) == 9


def test_resume(bootstrap, numbers):
    group, seen = unique("group"), []
    for _ in range(4):
        client = consumer(bootstrap, numbers.topic, group_id=group)
        seen += values(read(client, 25))
        client.commit()
        client.close()
    assert seen == list(range(100))


def test_auto_commit(bootstrap, numbers):
    group = unique("group")
    client = consumer(
        bootstrap,
        numbers.topic,
        group_id=group,
        enable_auto_commit=True,
        auto_commit_interval_ms=100,
    )
    read(client, 100)

    def stored():
        client.poll(timeout_ms=POLL_MS)
        return client.committed(numbers) == 100

    until(stored, "auto commit", pause=0)
    client.close()


def test_auto_commit_on_close(bootstrap, numbers):
    group = unique("group")
    client = consumer(
        bootstrap,
        numbers.topic,
        group_id=group,
        enable_auto_commit=True,
        auto_commit_interval_ms=600_000,
    )
    read(client, 100)
    client.close()
    other = consumer(bootstrap, group_id=group)
    assert other.committed(numbers) == 100
    other.close()
