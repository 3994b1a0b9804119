"""kcat pretends to know only what an old broker offers.

Without ApiVersions librdkafka takes the versions of broker.version.fallback. A fallback of 0.10.0
or later asks for ApiVersions all the same; with an earlier one Apache Kafka 4 answers Metadata v0 and
closes the connection on Produce v1 and ListOffsets v0, so metadata is all there is to check.
"""

import json

import pytest

import kcat
from broker_suite import unique, until
from clients import CODECS


def old(version):
    return ["-X", "api.version.request=false", "-X", f"broker.version.fallback={version}"]


@pytest.mark.parametrize("version", ["0.8.0", "0.8.2", "0.9.0", "0.10.0", "0.11.0"])
def test_metadata(bootstrap, new_topic, version):
    topic = new_topic(3)
    for selection in ([], ["-t", topic]):
        listing = json.loads(kcat.run(bootstrap, "-L", "-J", *selection, *old(version)))
        found = {entry["topic"]: entry["partitions"] for entry in listing["topics"]}
        assert [part["partition"] for part in found[topic]] == [0, 1, 2]
        assert listing["brokers"]


@pytest.mark.parametrize("version", ["0.10.0", "0.10.2", "0.11.0", "1.0.0"])
def test_produce_and_consume(bootstrap, new_topic, version):
    topic = new_topic()
    for codec in CODECS:
        kcat.produce(bootstrap, topic, "-k", codec, "-z", codec, *old(version), stdin=b"a\nb\n")
    text = kcat.consume(bootstrap, topic, "-f", "%k %s,", *old(version)).decode()
    assert text == "".join(f"{codec} a,{codec} b," for codec in CODECS)


def test_query(bootstrap, new_topic):
    topic = new_topic()
    kcat.produce(bootstrap, topic, *old("0.10.0"), stdin=b"v\n")
    answer = kcat.run(bootstrap, "-Q", "-t", f"{topic}:0:-1", *old("0.10.0")).decode()
    assert f"{topic} [0] offset 1" in answer


def test_group(bootstrap, new_topic):
    topic = new_topic()
    kcat.produce(bootstrap, topic, *old("0.10.0"), stdin=b"v\n" * 5)
    member = kcat.GroupMember(bootstrap, unique("group"), [topic], *old("0.10.0"))
    until(lambda: len(member.lines) == 5, lambda: f"five records: {member.notes}")
    member.terminate()


@pytest.mark.parametrize("timeout_ms", [100, 10000])
def test_any_api_version_timeout(bootstrap, new_topic, timeout_ms):
    topic = new_topic()
    setting = ["-X", f"api.version.request.timeout.ms={timeout_ms}"]
    kcat.produce(bootstrap, topic, *setting, stdin=b"v\n")
    assert kcat.consume(bootstrap, topic, *setting) == b"v\n"
