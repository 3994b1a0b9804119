"""What the tests of this folder share: clients with short settings, and reading and writing to the
end."""

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from broker_suite import unique, until

# FINDINGS.md: a poll that ends while a rebalance is under way may leave the member hanging, so
# polls last longer than a rebalance takes. They end as soon as there are records.
POLL_MS = 3000


def producer(bootstrap, **settings):
    return KafkaProducer(bootstrap_servers=bootstrap, **settings)


def consumer(bootstrap, *topics, listener=None, **settings):
    """A consumer, subscribed to `topics` if there are any, that never commits unless told to."""
    defaults = {
        "bootstrap_servers": bootstrap,
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "fetch_max_wait_ms": 100,
    }
    client = KafkaConsumer(**(defaults | settings))
    if topics:
        client.subscribe(topics, listener=listener)
    return client


def create_topic(admin, partitions=1, prefix="topic", **config):
    name = unique(prefix)
    configs = {key.replace("_", "."): value for key, value in config.items()}
    options = {"num_partitions": partitions, "replication_factor": 1, "configs": configs}
    admin.create_topics({name: options}, wait_for_metadata=True)
    return name


def deliver(client, records):
    """Sends records, given as keyword arguments of send(), and returns their metadata."""
    futures = [client.send(**record) for record in records]
    client.flush(20)
    return [future.get(20) for future in futures]


def read(client, count, seconds=20.0):
    """The next `count` records, and never more than that."""
    records = []

    def enough():
        found = client.poll(timeout_ms=POLL_MS, max_records=count - len(records))
        for batch in found.values():
            records.extend(batch)
        return len(records) == count

    until(enough, lambda: f"{count} records, there are {len(records)}", seconds, pause=0)
    return records


def read_topic(bootstrap, topic, count, partitions=1, **settings):
    """Reads a topic from its beginning and makes sure that nothing follows."""
    places = [TopicPartition(topic, part) for part in range(partitions)]
    client = consumer(bootstrap, **settings)
    client.assign(places)
    client.seek_to_beginning()
    records = read(client, count)
    ends = client.end_offsets(places)
    assert {place: client.position(place) for place in places} == ends
    client.close()
    return records
