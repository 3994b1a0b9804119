"""kcat: every mode and the options that reach the broker."""

import json
import os

import pytest

import kcat
from broker_suite import unique, until
from clients import CODECS

NUMBERS = "".join(f"{number}\n" for number in range(100)).encode()


def test_metadata(bootstrap, new_topic):
    topics = {new_topic(partitions): partitions for partitions in (1, 3)}
    listing = json.loads(kcat.run(bootstrap, "-L", "-J"))
    assert listing["controllerid"] in [broker["id"] for broker in listing["brokers"]]
    found = {topic["topic"]: topic["partitions"] for topic in listing["topics"]}
    for topic, count in topics.items():
        assert [part["partition"] for part in found[topic]] == list(range(count))
        for part in found[topic]:
            assert {"id": part["leader"]} in part["replicas"]
            assert {"id": part["leader"]} in part["isrs"]


def test_metadata_of_one_topic(bootstrap, new_topic):
    topic = new_topic(4)
    listing = json.loads(kcat.run(bootstrap, "-L", "-J", "-t", topic))
    assert [entry["topic"] for entry in listing["topics"]] == [topic]
    assert len(listing["topics"][0]["partitions"]) == 4
    text = kcat.run(bootstrap, "-L", "-t", topic).decode()
    assert f'topic "{topic}" with 4 partitions' in text


@pytest.mark.parametrize("codec", CODECS)
def test_codec(bootstrap, new_topic, codec):
    topic = new_topic()
    kcat.produce(bootstrap, topic, "-z", codec, stdin=NUMBERS)
    assert kcat.consume(bootstrap, topic) == NUMBERS


@pytest.mark.parametrize("acks", ["0", "1", "-1"])
def test_acks(bootstrap, new_topic, acks):
    topic = new_topic()
    kcat.produce(bootstrap, topic, "-X", f"acks={acks}", stdin=NUMBERS)
    # Without acknowledgements the records may still be on their way to the log.
    until(lambda: kcat.consume(bootstrap, topic, "-c", 100) == NUMBERS, "all records")


def test_idempotence(bootstrap, new_topic):
    topic = new_topic()
    kcat.produce(bootstrap, topic, "-X", "enable.idempotence=true", stdin=NUMBERS)
    assert kcat.consume(bootstrap, topic) == NUMBERS


def test_keys(bootstrap, new_topic):
    topic = new_topic()
    kcat.produce(bootstrap, topic, "-K:", "-p", 0, stdin=b"a:1\nb:2\n:3\n")
    assert kcat.consume(bootstrap, topic, "-K:") == b"a:1\nb:2\n:3\n"
    kcat.produce(bootstrap, topic, "-k", "fixed", "-p", 0, stdin=b"4\n")
    assert kcat.consume(bootstrap, topic, "-K:", "-o", 3) == b"fixed:4\n"


def test_headers(bootstrap, new_topic):
    topic = new_topic()
    kcat.produce(bootstrap, topic, "-H", "a=1", "-H", "b=two words", "-H", "c", stdin=b"v\n")
    (record,) = kcat.consume_json(bootstrap, topic)
    assert record["headers"] == ["a", "1", "b", "two words", "c", None]
    assert kcat.consume(bootstrap, topic, "-f", "%h") == b"a=1,b=two words,c=NULL"


def test_null_values(bootstrap, new_topic):
    topic = new_topic()
    kcat.produce(bootstrap, topic, "-Z", "-K:", stdin=b"key:\n:value\n:\n")
    assert kcat.consume(bootstrap, topic, "-f", "%K %S,") == b"3 -1,-1 5,-1 -1,"
    kcat.produce(bootstrap, topic, "-K:", stdin=b"key:\n")
    assert kcat.consume(bootstrap, topic, "-o", 3, "-f", "%K %S") == b"3 0"


def test_json_envelope(bootstrap, new_topic):
    topic = new_topic()
    kcat.produce(bootstrap, topic, "-k", "key", stdin=b"value\n")
    (record,) = kcat.consume_json(bootstrap, topic)
    assert record["topic"] == topic
    assert (record["partition"], record["offset"]) == (0, 0)
    assert (record["key"], record["payload"]) == ("key", "value")
    assert record["tstype"] == "create"


def test_whole_file_as_one_large_record(bootstrap, new_topic, tmp_path):
    topic = new_topic(max_message_bytes="3000000")
    content = os.urandom(2_500_000)
    (tmp_path / "content").write_bytes(content)
    kcat.produce(bootstrap, topic, "-X", "message.max.bytes=3000000", str(tmp_path / "content"))
    assert kcat.consume(bootstrap, topic, "-f", "%s") == content


def test_too_large(bootstrap, new_topic, tmp_path):
    topic = new_topic()
    (tmp_path / "content").write_bytes(os.urandom(2_000_000))
    kcat.run(
        bootstrap,
        "-P",
        "-t",
        topic,
        "-X",
        "message.max.bytes=3000000",
        str(tmp_path / "content"),
        expect=1,
    )
    assert kcat.consume(bootstrap, topic) == b""


@pytest.mark.parametrize(
    ("start", "first"), [("beginning", 0), ("0", 0), ("37", 37), ("-5", 95), ("end", 100)]
)
def test_offsets(bootstrap, new_topic, start, first):
    topic = new_topic()
    kcat.produce(bootstrap, topic, stdin=NUMBERS)
    expected = NUMBERS.splitlines()[first:]
    assert kcat.consume(bootstrap, topic, "-o", start).splitlines() == expected


def test_count(bootstrap, new_topic):
    topic = new_topic()
    kcat.produce(bootstrap, topic, stdin=NUMBERS)
    assert kcat.consume(bootstrap, topic, "-c", 3, "-o", 50) == b"50\n51\n52\n"


def test_partitions(bootstrap, new_topic):
    topic = new_topic(3)
    for part in range(3):
        kcat.produce(bootstrap, topic, "-p", part, stdin=f"{part}\n".encode() * 5)
    assert kcat.consume(bootstrap, topic, "-p", 1) == b"1\n" * 5
    every = sorted(kcat.consume(bootstrap, topic, "-f", "%p %s\n").splitlines())
    assert every == [b"%d %d" % (part, part) for part in range(3) for _ in range(5)]


@pytest.fixture
def timed(bootstrap, new_topic):
    """A topic with ten records and the timestamps that the broker gives back for them."""
    topic = new_topic()
    for number in range(3):
        kcat.produce(bootstrap, topic, stdin=b"%d\n" % number)
    return topic, [record["ts"] for record in kcat.consume_json(bootstrap, topic)]


def test_offset_by_timestamp(bootstrap, timed):
    topic, stamps = timed
    assert kcat.consume(bootstrap, topic, "-o", f"s@{stamps[1]}") == b"1\n2\n"
    assert kcat.consume(bootstrap, topic, "-o", f"s@{stamps[0] - 1000}") == b"0\n1\n2\n"
    assert kcat.consume(bootstrap, topic, "-o", f"s@{stamps[2] + 1000}") == b""
    until_second = kcat.consume(bootstrap, topic, "-o", f"s@{stamps[0]}", "-o", f"e@{stamps[2]}")
    assert until_second == b"0\n1\n"


def test_query(bootstrap, timed):
    topic, stamps = timed

    def query(stamp):
        return kcat.run(bootstrap, "-Q", "-t", f"{topic}:0:{stamp}").decode()

    assert f"{topic} [0] offset 1" in query(stamps[1])
    assert f"{topic} [0] offset 0" in query(-2)
    assert f"{topic} [0] offset 3" in query(-1)
    assert f"{topic} [0] offset -1" in query(stamps[2] + 1000)


def test_query_as_json(bootstrap, timed):
    topic, stamps = timed
    found = json.loads(kcat.run(bootstrap, "-Q", "-J", "-t", f"{topic}:0:{stamps[2]}"))
    assert found[topic]["0"]["offset"] == 2


def test_unknown_topic(bootstrap):
    kcat.run(
        bootstrap,
        "-C",
        "-e",
        "-t",
        unique("missing"),
        "-X",
        "allow.auto.create.topics=false",
        expect=1,
    )


def test_does_not_exit_on_error(bootstrap, new_topic):
    """With -E kcat goes on although one of several brokers does not answer."""
    topic = new_topic()
    kcat.produce(f"127.0.0.1:1,{bootstrap}", topic, "-E", stdin=NUMBERS)
    assert kcat.consume(f"127.0.0.1:1,{bootstrap}", topic, "-E") == NUMBERS


def test_read_committed(bootstrap, new_topic):
    topic = new_topic()
    kcat.produce(bootstrap, topic, stdin=NUMBERS)
    for level in ("read_committed", "read_uncommitted"):
        assert kcat.consume(bootstrap, topic, "-X", f"isolation.level={level}") == NUMBERS


def test_group_resumes(bootstrap, new_topic):
    topics, group = [new_topic(2), new_topic()], unique("group")
    expected = set()
    for round_number in range(2):
        for topic in topics:
            kcat.produce(bootstrap, topic, "-p", 0, stdin=b"v\n" * 10)
            expected |= {f"{topic} 0 {10 * round_number + n}" for n in range(10)}
        member = kcat.GroupMember(bootstrap, group, topics)
        until(lambda member=member: len(member.lines) >= 20, "twenty records")
        member.terminate()
        assert set(member.lines) == expected
        assert len(member.lines) == 20
        expected = set()


@pytest.mark.slow
@pytest.mark.thorough
def test_group_members_share(bootstrap, new_topic):
    topic, group = new_topic(4), unique("group")
    members = [kcat.GroupMember(bootstrap, group, [topic])]
    members[0].await_assignment(4)
    members.append(kcat.GroupMember(bootstrap, group, [topic]))
    for member in members:
        member.await_assignment(2)
    for part in range(4):
        kcat.produce(bootstrap, topic, "-p", part, stdin=b"v\n" * 10)
    until(lambda: sum(len(member.lines) for member in members) == 40, "forty records")
    assert [len(member.lines) for member in members] == [20, 20]
    members[0].terminate()
    members[1].await_assignment(4)
    members[1].terminate()


@pytest.mark.slow
@pytest.mark.thorough
def test_killed_member_is_replaced(bootstrap, new_topic):
    """Nobody says goodbye: the broker notices by the session timeout."""
    topic, group = new_topic(2), unique("group")
    killed = kcat.GroupMember(bootstrap, group, [topic])
    killed.await_assignment(2)
    other = kcat.GroupMember(bootstrap, group, [topic])
    other.await_assignment(1)
    killed.kill()
    other.await_assignment(2)
    for part in range(2):
        kcat.produce(bootstrap, topic, "-p", part, stdin=b"v\n")
    until(lambda: len(other.lines) == 2, "two records")
    other.terminate()
