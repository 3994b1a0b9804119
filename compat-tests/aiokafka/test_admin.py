"""The admin client: topics, settings, records, groups and the cluster."""

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import (
    InvalidConfigurationError,
    InvalidPartitionsError,
    InvalidReplicationFactorError,
    InvalidTopicError,
    OffsetOutOfRangeError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)

from broker_suite import unique
from clients import await_topic, check, consumer, eventually, producer, read_topic
from members import Member, await_shares


async def create(admin, *topics, **options):
    check((await admin.create_topics(list(topics), **options)).topic_errors)


async def delete(admin, name):
    check((await admin.delete_topics([name])).topic_error_codes)


async def test_create_and_delete(admin):
    name = unique("admin")
    await create(admin, NewTopic(name, 3, 1))
    await await_topic(admin, name, 3)
    assert name in await admin.list_topics()
    await delete(admin, name)

    async def gone():
        return name not in await admin.list_topics()

    await eventually(gone, "deletion")


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (NewTopic("not a valid name", 1, 1), InvalidTopicError),
        (NewTopic("..", 1, 1), InvalidTopicError),
        (NewTopic(unique("bad"), 1, 100), InvalidReplicationFactorError),
        (NewTopic(unique("bad"), 0, 1), InvalidPartitionsError),
        (NewTopic(unique("bad"), 1, 1, topic_configs={"no.such": "1"}), InvalidConfigurationError),
        (
            NewTopic(unique("bad"), 1, 1, topic_configs={"retention.ms": "soon"}),
            InvalidConfigurationError,
        ),
    ],
)
async def test_create_with_errors(admin, topic, error):
    with pytest.raises(error):
        await create(admin, topic)


async def test_create_existing(admin, new_topic):
    with pytest.raises(TopicAlreadyExistsError):
        await create(admin, NewTopic(await new_topic(), 1, 1))


async def test_create_validates_only(admin, new_topic):
    name = unique("admin")
    await create(admin, NewTopic(name, 2, 1), validate_only=True)
    # A topic that is really created afterwards shows that the other one would be visible by now.
    await new_topic()
    assert name not in await admin.list_topics()


async def test_delete_unknown(admin):
    with pytest.raises(UnknownTopicOrPartitionError):
        await delete(admin, unique("missing"))


async def test_describe_topics(admin, new_topic):
    name = await new_topic(3)
    (topic,) = await admin.describe_topics([name])
    assert (topic["topic"], topic["error_code"], topic["is_internal"]) == (name, 0, False)
    assert sorted(part["partition"] for part in topic["partitions"]) == [0, 1, 2]
    for part in topic["partitions"]:
        assert part["leader"] in part["replicas"]
        assert part["leader"] in part["isr"]


async def test_describe_cluster(admin):
    cluster = await admin.describe_cluster()
    assert cluster["cluster_id"]
    assert cluster["controller_id"] in [broker["node_id"] for broker in cluster["brokers"]]
    assert all(broker["host"] and broker["port"] > 0 for broker in cluster["brokers"])


async def test_create_partitions(bootstrap, admin, new_topic):
    name = await new_topic(2)
    await admin.create_partitions({name: NewPartitions(4)})
    await await_topic(admin, name, 4)
    async with producer(bootstrap) as client:
        await client.send_and_wait(name, b"v", partition=3)
    await read_topic(bootstrap, name, 1, partitions=4)
    with pytest.raises(InvalidPartitionsError):
        await admin.create_partitions({name: NewPartitions(3)})
    with pytest.raises(UnknownTopicOrPartitionError):
        await admin.create_partitions({unique("missing"): NewPartitions(3)})


async def describe_configs(admin, resource):
    (response,) = await admin.describe_configs([resource])
    ((code, _, _, name, entries),) = response.resources
    check([(name, code)])
    return {entry[0]: entry[1] for entry in entries}


async def test_configs_of_topic(admin, new_topic):
    name = await new_topic(retention_ms="1000000", max_message_bytes="5000")
    resource = ConfigResource(ConfigResourceType.TOPIC, name)
    configs = await describe_configs(admin, resource)
    assert configs["retention.ms"] == "1000000"
    assert configs["cleanup.policy"] == "delete"
    only = ConfigResource(ConfigResourceType.TOPIC, name, {"retention.ms": None})
    assert await describe_configs(admin, only) == {"retention.ms": "1000000"}

    change = ConfigResource(ConfigResourceType.TOPIC, name, {"segment.ms": "700000"})
    (response,) = await admin.alter_configs([change])
    check([(resource_name, code) for code, _, _, resource_name in response.resources])

    async def changed():
        configs = await describe_configs(admin, resource)
        return configs["segment.ms"] == "700000" and configs

    # AlterConfigs replaces all settings of the topic.
    configs = await eventually(changed, "segment.ms")
    assert configs["retention.ms"] == "604800000"
    assert configs["max.message.bytes"] == "1048588"


async def test_bad_configs(admin, new_topic):
    change = ConfigResource(ConfigResourceType.TOPIC, await new_topic(), {"segment.ms": "soon"})
    (response,) = await admin.alter_configs([change])
    with pytest.raises(InvalidConfigurationError):
        check([(name, code) for code, _, _, name in response.resources])
    with pytest.raises(UnknownTopicOrPartitionError):
        await describe_configs(admin, ConfigResource(ConfigResourceType.TOPIC, unique("missing")))


async def test_configs_of_broker(admin):
    broker = (await admin.describe_cluster())["brokers"][0]["node_id"]
    configs = await describe_configs(admin, ConfigResource(ConfigResourceType.BROKER, str(broker)))
    assert int(configs["num.partitions"]) >= 1


async def test_delete_records(bootstrap, admin, new_topic):
    place = TopicPartition(await new_topic(), 0)
    async with producer(bootstrap) as client:
        for number in range(10):
            await client.send_and_wait(place.topic, b"%d" % number)
    assert await admin.delete_records({place: RecordsToDelete(4)}) == {place: 4}
    records = await read_topic(bootstrap, place.topic, 6)
    assert [record.offset for record in records] == list(range(4, 10))
    assert await admin.delete_records({place: RecordsToDelete(-1)}) == {place: 10}
    with pytest.raises(OffsetOutOfRangeError):
        await admin.delete_records({place: RecordsToDelete(11)})


async def test_groups(bootstrap, admin, new_topic):
    topic, group = await new_topic(2), unique("group")
    member = await Member(bootstrap, group, [topic], client_id="the-member").start()
    await await_shares([member], [2])
    assert (group, "consumer") in [listed[:2] for listed in await admin.list_consumer_groups()]
    assert await admin.find_coordinator(group) in [
        broker["node_id"] for broker in (await admin.describe_cluster())["brokers"]
    ]

    async def describe(name):
        (response,) = await admin.describe_consumer_groups([name])
        (found,) = response.to_object()["groups"]
        return found

    described = await describe(group)
    assert described["error_code"] == 0
    assert (described["group"], described["state"]) == (group, "Stable")
    assert (described["protocol_type"], described["protocol"]) == ("consumer", "roundrobin")
    assert [one["client_id"] for one in described["members"]] == ["the-member"]
    await member.close()
    assert (await describe(group))["state"] == "Empty"
    assert (await describe(unique("missing")))["state"] == "Dead"


async def test_group_offsets(bootstrap, admin, new_topic):
    topic, group = await new_topic(3), unique("group")
    places = [TopicPartition(topic, part) for part in range(3)]
    async with consumer(bootstrap, group_id=group) as client:
        client.assign(places)
        await client.commit({places[0]: 4, places[1]: (5, "note")})
    offsets = await admin.list_consumer_group_offsets(group)
    assert {place: tuple(found) for place, found in offsets.items()} == {
        places[0]: (4, ""),
        places[1]: (5, "note"),
    }
    some = await admin.list_consumer_group_offsets(group, partitions=places[1:])
    assert [some[place].offset for place in places[1:]] == [5, -1]
    assert await admin.list_consumer_group_offsets(unique("missing")) == {}
