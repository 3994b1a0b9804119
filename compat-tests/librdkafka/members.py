"""Members of a consumer group, each polling in a thread of its own."""

import threading
from collections import Counter

from confluent_kafka import KafkaException

from broker_suite import until
from clients import consumer

# The session is Kafka's own lower bound (group.min.session.timeout.ms); with a quick heartbeat a
# member learns of a rebalance soon.
MEMBER_SETTINGS = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 200}


class Member:
    """Consumes `topics` until close(). It commits what it has processed whenever partitions are
    taken from it in an orderly way, so no other member sees those records again."""

    def __init__(self, bootstrap, group, topics, **settings):
        self.received = []
        self.owned = set()
        self.assignments = 0
        self.revocations = 0
        self.lost = 0
        self.errors = []
        self._closing = threading.Event()
        self._client = consumer(bootstrap, group, **(MEMBER_SETTINGS | settings))
        self._client.subscribe(
            topics, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self):
        """Leaves the group; everything received is committed."""
        self._closing.set()
        self._thread.join(20)
        assert not self._thread.is_alive(), "a member did not close within 20 s"

    def _run(self):
        try:
            while not self._closing.is_set():
                message = self._client.poll(0.05)
                if message is None:
                    continue
                if message.error():
                    self.errors.append(message.error())
                else:
                    self.received.append((message.topic(), message.partition(), message.offset()))
            self._client.close()
        except KafkaException as raised:
            self.errors.append(raised.args[0])

    def _on_assign(self, _client, partitions):
        self.assignments += 1
        self.owned |= {(part.topic, part.partition) for part in partitions}

    def _on_revoke(self, client, partitions):
        self.revocations += 1
        try:
            client.commit(asynchronous=False)
        except KafkaException as raised:
            # Nothing was received since the last commit.
            if raised.args[0].name() != "_NO_OFFSET":
                self.errors.append(raised.args[0])
        self.owned -= {(part.topic, part.partition) for part in partitions}

    def _on_lost(self, _client, partitions):
        self.lost += 1
        self.owned -= {(part.topic, part.partition) for part in partitions}


def await_shares(members, shares):
    """Waits until the members own so many partitions each (in any order), none of them twice."""

    def shared():
        owned = [set(member.owned) for member in members]
        apart = len(set().union(*owned)) == sum(map(len, owned))
        return apart and sorted(map(len, owned)) == sorted(shares)

    until(
        shared,
        lambda: (
            f"shares {shares}: {[sorted(m.owned) for m in members]} {[m.errors for m in members]}"
        ),
        30,
    )


def await_received(members, count):
    """Waits for `count` records in all and makes sure that none was read twice."""
    until(
        lambda: sum(len(member.received) for member in members) >= count,
        lambda: (
            f"{count} records: {[len(m.received) for m in members]} {[m.errors for m in members]}"
        ),
        30,
    )
    seen = Counter(place for member in members for place in member.received)
    assert [place for place, times in seen.items() if times > 1] == []
    assert len(seen) == count


def assert_no_trouble(members):
    assert [(member.errors, member.lost) for member in members] == [([], 0)] * len(members)
