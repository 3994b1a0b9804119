"""What the tests of this folder share: clients with short, strict settings, and reading and writing
to the end."""

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from broker_suite import unique, until

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def admin_client(bootstrap):
    return AdminClient({"bootstrap.servers": bootstrap})


def producer(bootstrap, **settings):
    defaults = {"bootstrap.servers": bootstrap, "linger.ms": 5, "message.timeout.ms": 15000}
    return Producer(defaults | dotted(settings))


def consumer(bootstrap, group=None, **settings):
    """A consumer that checks the CRC of each batch and never commits unless told to. The end of a
    partition is seen when a fetch comes back empty, so fetches wait only for a short time."""
    defaults = {
        "bootstrap.servers": bootstrap,
        "group.id": group or unique("unused"),
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "check.crcs": True,
        "fetch.wait.max.ms": 50,
    }
    return Consumer(defaults | dotted(settings))


def dotted(settings):
    """Lets settings be written as keyword arguments: fetch_max_bytes is fetch.max.bytes. Names of
    callbacks (stats_cb, on_commit) have no dots."""
    return {
        name if callable(value) else name.replace("_", "."): value
        for name, value in settings.items()
    }


def create_topic(admin, partitions=1, prefix="topic", **config):
    name = unique(prefix)
    topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=dotted(config))
    admin.create_topics([topic])[name].result(20)
    await_topic(admin, name, partitions)
    return name


def await_topic(admin, name, partitions):
    """Kafka may show a new topic some milliseconds after it has confirmed its creation."""

    def led():
        topic = admin.list_topics(name, timeout=10).topics[name]
        leaders = [part.leader for part in topic.partitions.values()]
        return topic.error is None and len(leaders) == partitions and -1 not in leaders

    until(led, f"{name} has {partitions} partitions with a leader")


def deliver(client, records):
    """Sends records, given as keyword arguments of produce(), and returns the confirmed messages in
    the order of their confirmation. The first refusal is raised."""
    delivered, refused = [], []

    def confirm(error, message):
        (refused if error else delivered).append(error or message)

    for record in records:
        client.produce(on_delivery=confirm, **record)
        client.poll(0)
    left = client.flush(20)
    if refused:
        raise KafkaException(refused[0])
    assert left == 0, f"{left} records were neither confirmed nor refused"
    return delivered


def read(client, count, seconds=20.0):
    """The next `count` messages, and never more than that. Any error is raised."""
    messages = []

    def enough():
        for message in client.consume(count - len(messages), timeout=0.1):
            if message.error():
                raise KafkaException(message.error())
            messages.append(message)
        return len(messages) == count

    until(enough, lambda: f"{count} messages, there are {len(messages)}", seconds, pause=0)
    return messages


def read_topic(bootstrap, topic, count, partitions=1, **settings):
    """Reads a topic from its beginning and makes sure that nothing follows."""
    client = consumer(bootstrap, enable_partition_eof=True, **settings)
    client.assign([TopicPartition(topic, part, OFFSET_BEGINNING) for part in range(partitions)])
    messages, ended = [], set()

    def finished():
        message = client.poll(0.1)
        if message is None:
            return False
        if message.error() is None:
            messages.append(message)
        elif message.error().name() == "_PARTITION_EOF":
            ended.add(message.partition())
        else:
            raise KafkaException(message.error())
        return len(ended) == partitions and len(messages) >= count

    until(finished, f"the end of {topic}", pause=0)
    client.close()
    assert len(messages) == count
    return messages


def error_of(call):
    """The name of the Kafka error that `call` raises."""
    try:
        call()
    except KafkaException as raised:
        return raised.args[0].name()
    raise AssertionError("expected a KafkaException")
