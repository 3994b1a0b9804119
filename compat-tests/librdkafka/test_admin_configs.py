"""AdminClient: settings of topics and brokers."""

import os

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ResourceType,
)

from broker_suite import unique, until
from clients import error_of


def describe(admin, resource):
    return admin.describe_configs([resource])[resource].result(20)


def of_topic(name):
    return ConfigResource(ResourceType.TOPIC, name)


def change(admin, name, operations, **options):
    """operations are (operation, setting, value)."""
    resource = ConfigResource(
        ResourceType.TOPIC,
        name,
        incremental_configs=[
            ConfigEntry(setting, value, incremental_operation=operation)
            for operation, setting, value in operations
        ],
    )
    admin.incremental_alter_configs([resource], **options)[resource].result(20)


def await_value(admin, name, setting, value):
    """Kafka applies a change some milliseconds after it has confirmed it."""
    until(lambda: describe(admin, of_topic(name))[setting].value == value, f"{setting}={value}")


def test_describe_topic(admin, new_topic):
    configs = describe(admin, of_topic(new_topic(retention_ms="12345678")))
    own = configs["retention.ms"]
    assert own.value == "12345678"
    assert own.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    assert not own.is_default
    assert not own.is_read_only
    assert not own.is_sensitive
    default = configs["cleanup.policy"]
    assert default.value == "delete"
    assert default.is_default
    assert {
        "cleanup.policy",
        "compression.type",
        "delete.retention.ms",
        "max.message.bytes",
        "message.timestamp.type",
        "min.insync.replicas",
        "retention.bytes",
        "retention.ms",
        "segment.bytes",
        "segment.ms",
    } <= set(configs)


def test_describe_broker(admin):
    broker = str(min(admin.list_topics(timeout=10).brokers))
    configs = describe(admin, ConfigResource(ResourceType.BROKER, broker))
    assert {"num.partitions", "log.retention.ms", "message.max.bytes"} <= set(configs)
    assert int(configs["num.partitions"].value) >= 1


def test_describe_unknown_topic(admin):
    resource = of_topic(unique("missing"))
    assert error_of(lambda: describe(admin, resource)) == "UNKNOWN_TOPIC_OR_PART"


def test_incremental_changes(admin, new_topic):
    name = new_topic(retention_ms="1000000")
    change(
        admin,
        name,
        [
            (AlterConfigOpType.SET, "retention.bytes", "5000000"),
            (AlterConfigOpType.SET, "max.message.bytes", "2000"),
        ],
    )
    await_value(admin, name, "max.message.bytes", "2000")
    # What was not named has stayed.
    await_value(admin, name, "retention.ms", "1000000")
    change(admin, name, [(AlterConfigOpType.DELETE, "max.message.bytes", None)])
    await_value(admin, name, "max.message.bytes", "1048588")
    await_value(admin, name, "retention.bytes", "5000000")


def test_incremental_changes_of_a_list(admin, new_topic):
    name = new_topic()
    if os.environ.get("COMPAT_BROKER") == "keylane":
        # Its only list is the cleanup policy, and compaction is refused until it is there.
        with pytest.raises(KafkaException) as refused:
            change(admin, name, [(AlterConfigOpType.APPEND, "cleanup.policy", "compact")])
        assert refused.value.args[0].name() == "INVALID_CONFIG"
        return
    change(admin, name, [(AlterConfigOpType.APPEND, "cleanup.policy", "compact")])
    policy = until(
        lambda: (
            "compact" in describe(admin, of_topic(name))["cleanup.policy"].value
            and describe(admin, of_topic(name))["cleanup.policy"].value
        ),
        "cleanup.policy",
    )
    assert sorted(policy.split(",")) == ["compact", "delete"]
    change(admin, name, [(AlterConfigOpType.SUBTRACT, "cleanup.policy", "delete")])
    await_value(admin, name, "cleanup.policy", "compact")


@pytest.mark.parametrize(
    ("operation", "setting", "value", "error"),
    [
        (AlterConfigOpType.SET, "no.such.config", "1", "INVALID_CONFIG"),
        (AlterConfigOpType.SET, "retention.ms", "soon", "INVALID_CONFIG"),
        (AlterConfigOpType.SET, "cleanup.policy", "burn", "INVALID_CONFIG"),
        (AlterConfigOpType.APPEND, "retention.ms", "1", "INVALID_CONFIG"),
    ],
)
def test_bad_incremental_changes(admin, new_topic, operation, setting, value, error):
    name = new_topic()
    assert error_of(lambda: change(admin, name, [(operation, setting, value)])) == error


def test_incremental_change_of_unknown_topic(admin):
    operation = (AlterConfigOpType.SET, "retention.ms", "1000")
    missing = unique("missing")
    assert error_of(lambda: change(admin, missing, [operation])) == "UNKNOWN_TOPIC_OR_PART"


def test_incremental_change_validates_only(admin, new_topic):
    name = new_topic(retention_ms="1000000")
    operation = (AlterConfigOpType.SET, "retention.ms", "2000000")
    change(admin, name, [operation], validate_only=True)
    # A later change that is visible shows that the first one would be, too.
    change(admin, name, [(AlterConfigOpType.SET, "segment.ms", "700000")])
    await_value(admin, name, "segment.ms", "700000")
    await_value(admin, name, "retention.ms", "1000000")


# The client calls alter_configs deprecated; the protocol still has it.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_alter_configs_replaces_all(admin, new_topic):
    name = new_topic(retention_ms="1000000", max_message_bytes="5000")
    resource = ConfigResource(ResourceType.TOPIC, name, set_config={"segment.ms": "700000"})
    admin.alter_configs([resource])[resource].result(20)
    await_value(admin, name, "segment.ms", "700000")
    await_value(admin, name, "retention.ms", "604800000")
    await_value(admin, name, "max.message.bytes", "1048588")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_bad_alter_configs(admin, new_topic):
    def replace(name, config):
        resource = ConfigResource(ResourceType.TOPIC, name, set_config=config)
        admin.alter_configs([resource])[resource].result(20)

    name = new_topic()
    assert error_of(lambda: replace(name, {"no.such.config": "1"})) == "INVALID_CONFIG"
    assert error_of(lambda: replace(name, {"segment.ms": "soon"})) == "INVALID_CONFIG"
    missing = unique("missing")
    assert error_of(lambda: replace(missing, {"segment.ms": "1"})) == "UNKNOWN_TOPIC_OR_PART"
