"""AdminClient: topics, partitions, records and the cluster."""

import pytest
from confluent_kafka import OFFSET_END, IsolationLevel, TopicCollection, TopicPartition
from confluent_kafka.admin import NewPartitions, NewTopic, OffsetSpec

from broker_suite import unique, until
from clients import await_topic, consumer, deliver, error_of, producer, read, read_topic


def create(admin, topic, **options):
    admin.create_topics([topic], **options)[topic.topic].result(20)


def delete(admin, name):
    admin.delete_topics([name])[name].result(20)


def describe(admin, name):
    return admin.describe_topics(TopicCollection([name]))[name].result(20)


def known(admin):
    return admin.list_topics(timeout=10).topics


@pytest.fixture
def name(admin):
    """A name for a topic; if the test creates it, it is deleted afterwards."""
    chosen = unique("admin")
    yield chosen
    admin.delete_topics([chosen])[chosen].exception(20)


def test_create_and_delete(admin, name):
    create(admin, NewTopic(name, 3, 1))
    await_topic(admin, name, 3)
    delete(admin, name)
    until(lambda: name not in known(admin), "deletion")


def test_create_several(admin):
    names = [unique("admin") for _ in range(5)]
    futures = admin.create_topics([NewTopic(one, index + 1, 1) for index, one in enumerate(names)])
    for future in futures.values():
        future.result(20)
    for index, one in enumerate(names):
        await_topic(admin, one, index + 1)
    for future in admin.delete_topics(names).values():
        future.result(20)


def test_create_with_defaults(admin, name):
    create(admin, NewTopic(name))
    until(lambda: name in known(admin), "creation")
    assert len(describe(admin, name).partitions) >= 1


def test_one_bad_topic_among_good_ones(admin, new_topic, name):
    existing = new_topic()
    futures = admin.create_topics([NewTopic(existing, 1, 1), NewTopic(name, 1, 1)])
    assert error_of(lambda: futures[existing].result(20)) == "TOPIC_ALREADY_EXISTS"
    futures[name].result(20)


def test_create_existing(admin, new_topic):
    name = new_topic()
    assert error_of(lambda: create(admin, NewTopic(name, 1, 1))) == "TOPIC_ALREADY_EXISTS"


@pytest.mark.parametrize("bad", ["", ".", "..", "a b", "a/b", "größe", "x" * 250])
def test_create_with_invalid_name(admin, bad):
    assert error_of(lambda: create(admin, NewTopic(bad, 1, 1))) == "TOPIC_EXCEPTION"


def test_longest_and_oddest_names(admin):
    for good in (unique("x" * 236), unique("A.b_c-9")):
        create(admin, NewTopic(good, 1, 1))
        await_topic(admin, good, 1)
        delete(admin, good)


def test_names_that_collide_in_metrics(admin, name):
    """Kafka refuses a name that differs from an existing one only in . and _ (Topic.java)."""
    create(admin, NewTopic(f"{name}.x", 1, 1))
    bad = NewTopic(f"{name}_x", 1, 1)
    assert error_of(lambda: create(admin, bad)) == "TOPIC_EXCEPTION"
    delete(admin, f"{name}.x")


def test_bad_replication_factor(admin, name):
    bad = NewTopic(name, 1, 100)
    assert error_of(lambda: create(admin, bad)) == "INVALID_REPLICATION_FACTOR"


def test_bad_partition_count(admin, name):
    assert error_of(lambda: create(admin, NewTopic(name, 0, 1))) == "INVALID_PARTITIONS"


@pytest.mark.parametrize(
    "config",
    [
        {"no.such.config": "1"},
        {"retention.ms": "soon"},
        {"cleanup.policy": "burn"},
        {"max.message.bytes": "-1"},
        {"compression.type": "zip"},
    ],
)
def test_create_with_bad_config(admin, name, config):
    bad = NewTopic(name, 1, 1, config=config)
    assert error_of(lambda: create(admin, bad)) == "INVALID_CONFIG"


def test_create_validates_only(admin, new_topic, name):
    create(admin, NewTopic(name, 2, 1), validate_only=True)
    bad = NewTopic(name, 2, 100)
    assert error_of(lambda: create(admin, bad, validate_only=True)) == "INVALID_REPLICATION_FACTOR"
    # A topic that is really created afterwards shows that the other one would be visible by now.
    new_topic()
    assert name not in known(admin)


def test_create_with_assignment(admin, name):
    broker = min(admin.list_topics(timeout=10).brokers)
    create(admin, NewTopic(name, 2, replica_assignment=[[broker], [broker]]))
    await_topic(admin, name, 2)
    replicas = [part.replicas for part in known(admin)[name].partitions.values()]
    # All nodes have a replica, whatever was asked for.
    everywhere = sorted(admin.list_topics(timeout=10).brokers)
    assert [sorted(ids) for ids in replicas] == [everywhere, everywhere]


@pytest.mark.parametrize("brokers", [[9999], [0, 0]])
def test_create_with_bad_assignment(admin, name, brokers):
    bad = NewTopic(name, 1, replica_assignment=[brokers])
    assert error_of(lambda: create(admin, bad)) in (
        "INVALID_REPLICA_ASSIGNMENT",
        "INVALID_REPLICATION_FACTOR",
    )


def test_describe(admin, new_topic):
    name = new_topic(3)
    topic = describe(admin, name)
    assert topic.name == name
    assert not topic.is_internal
    assert str(topic.topic_id) == str(describe(admin, name).topic_id)
    assert [part.id for part in topic.partitions] == [0, 1, 2]
    for part in topic.partitions:
        assert part.leader.port > 0
        assert [node.id for node in part.replicas] == [node.id for node in part.isr]
        assert part.leader.id in [node.id for node in part.replicas]
    assert topic.authorized_operations is None


def test_describe_with_operations(admin, new_topic):
    name = new_topic()
    futures = admin.describe_topics(TopicCollection([name]), include_authorized_operations=True)
    operations = {operation.name for operation in futures[name].result(20).authorized_operations}
    assert {"READ", "WRITE", "DELETE", "DESCRIBE", "ALTER"} <= operations


def test_describe_unknown(admin):
    assert error_of(lambda: describe(admin, unique("missing"))) == "UNKNOWN_TOPIC_OR_PART"


def test_delete_unknown(admin):
    assert error_of(lambda: delete(admin, unique("missing"))) == "UNKNOWN_TOPIC_OR_PART"


def test_recreated_topic_is_empty(bootstrap, admin, name):
    ids = []
    for _ in range(3):
        create(admin, NewTopic(name, 1, 1))
        await_topic(admin, name, 1)
        ids.append(str(describe(admin, name).topic_id))
        deliver(producer(bootstrap), [{"topic": name, "value": b"v"}])
        read_topic(bootstrap, name, 1)
        delete(admin, name)
        until(lambda: name not in known(admin), "deletion")
    assert len(set(ids)) == 3


def test_create_partitions(bootstrap, admin, new_topic):
    name = new_topic(2)
    admin.create_partitions([NewPartitions(name, 5)])[name].result(20)
    await_topic(admin, name, 5)
    records = [{"topic": name, "partition": part, "value": b"v"} for part in range(5)]
    deliver(producer(bootstrap), records)
    read_topic(bootstrap, name, 5, partitions=5)


def test_create_partitions_errors(admin, new_topic):
    def grow(name, count, **options):
        admin.create_partitions([NewPartitions(name, count)], **options)[name].result(20)

    name = new_topic(2)
    assert error_of(lambda: grow(name, 1)) == "INVALID_PARTITIONS"
    assert error_of(lambda: grow(name, 2)) == "INVALID_PARTITIONS"
    assert error_of(lambda: grow(unique("missing"), 2)) == "UNKNOWN_TOPIC_OR_PART"
    grow(name, 4, validate_only=True)
    grow(name, 3)
    await_topic(admin, name, 3)


def test_delete_records(bootstrap, admin, new_topic):
    name = new_topic(2)
    records = [{"topic": name, "partition": n % 2, "value": str(n // 2)} for n in range(40)]
    deliver(producer(bootstrap, batch_num_messages=7), records)
    wanted = [TopicPartition(name, 0, 5), TopicPartition(name, 1, OFFSET_END)]
    marks = {
        place.partition: future.result(20).low_watermark
        for place, future in admin.delete_records(wanted).items()
    }
    assert marks == {0: 5, 1: 20}
    messages = read_topic(bootstrap, name, 15, partitions=2)
    assert [(m.partition(), m.offset()) for m in messages] == [(0, n) for n in range(5, 20)]
    # The next record gets the next offset although the partition is empty.
    record = {"topic": name, "partition": 1, "value": b"20"}
    assert deliver(producer(bootstrap), [record])[0].offset() == 20
    reader = consumer(bootstrap)
    reader.assign([TopicPartition(name, 1, 0)])
    assert read(reader, 1)[0].offset() == 20
    reader.close()


def test_delete_records_errors(bootstrap, admin, new_topic):
    def truncate(place):
        admin.delete_records([place])[place].result(20)

    name = new_topic()
    deliver(producer(bootstrap), [{"topic": name, "value": b"v"}])
    assert error_of(lambda: truncate(TopicPartition(name, 0, 2))) == "OFFSET_OUT_OF_RANGE"
    # Deleting what is gone already is no error.
    truncate(TopicPartition(name, 0, 1))
    truncate(TopicPartition(name, 0, 0))


def test_list_offsets(bootstrap, admin, new_topic):
    name = new_topic(retention_ms="-1")
    stamps = [1_000_000, 3_000_000, 2_000_000, 1_500_000]
    deliver(
        producer(bootstrap),
        [{"topic": name, "value": b"v", "timestamp": stamp} for stamp in stamps],
    )
    place = TopicPartition(name, 0)

    def lookup(spec, **options):
        found = admin.list_offsets({place: spec}, **options)[place].result(20)
        return found.offset, found.timestamp

    assert lookup(OffsetSpec.earliest())[0] == 0
    assert lookup(OffsetSpec.latest())[0] == 4
    assert lookup(OffsetSpec.max_timestamp()) == (1, 3_000_000)
    assert lookup(OffsetSpec.for_timestamp(1_000_001)) == (1, 3_000_000)
    assert lookup(OffsetSpec.for_timestamp(3_000_001))[0] == -1
    committed = lookup(OffsetSpec.latest(), isolation_level=IsolationLevel.READ_COMMITTED)
    assert committed[0] == 4
    admin.delete_records([TopicPartition(name, 0, 2)])[TopicPartition(name, 0, 2)].result(20)
    assert lookup(OffsetSpec.earliest())[0] == 2


def test_describe_cluster(admin):
    cluster = admin.describe_cluster().result(20)
    assert cluster.cluster_id
    assert cluster.controller.id in [node.id for node in cluster.nodes]
    assert all(node.host and node.port > 0 for node in cluster.nodes)
    assert cluster.authorized_operations is None
    assert cluster.cluster_id == admin.list_topics(timeout=10).cluster_id
    allowed = admin.describe_cluster(include_authorized_operations=True).result(20)
    assert {"CREATE", "ALTER", "DESCRIBE"} <= {op.name for op in allowed.authorized_operations}
