"""Runs kcat. Debian's kcat 1.7.1 is linked with librdkafka 2.0.2, three years older than the one of
confluent-kafka, so it also speaks older versions of the protocol."""

import json
import subprocess
import threading

from broker_suite import until


def run(bootstrap, *arguments, stdin=b"", expect=0):
    """Runs kcat to its end and gives its standard output; the exit status must be `expect`."""
    done = subprocess.run(
        ["kcat", "-b", bootstrap, "-m", "10", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == expect, f"exit {done.returncode}: {done.stderr.decode()}"
    return done.stdout


def produce(bootstrap, topic, *arguments, stdin=b""):
    run(bootstrap, "-P", "-t", topic, *arguments, stdin=stdin)


def consume(bootstrap, topic, *arguments):
    """Reads to the end, which kcat sees when a fetch comes back empty: after a short time, then."""
    wait = ["-X", "fetch.wait.max.ms=50"]
    return run(bootstrap, "-C", "-t", topic, "-e", "-q", *wait, *arguments)


def consume_json(bootstrap, topic, *arguments):
    return [json.loads(line) for line in consume(bootstrap, topic, "-J", *arguments).splitlines()]


class GroupMember:
    """kcat -G in the background; every record is kept as one line of the format given."""

    def __init__(self, bootstrap, group, topics, *arguments, form="%t %p %o\\n"):
        self.lines = []
        self.notes = []
        self._child = subprocess.Popen(
            ["kcat", "-b", bootstrap, "-G", group, "-u", "-f", form]
            + ["-X", "auto.offset.reset=earliest", "-X", "session.timeout.ms=6000"]
            + ["-X", "heartbeat.interval.ms=200", *arguments, *topics],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._readers = [
            threading.Thread(target=self._follow, args=(stream, lines), daemon=True)
            for stream, lines in (
                (self._child.stdout, self.lines),
                (self._child.stderr, self.notes),
            )
        ]
        for reader in self._readers:
            reader.start()

    @staticmethod
    def _follow(stream, lines):
        for line in stream:
            lines.append(line.rstrip("\n"))

    def await_assignment(self, partitions):
        """Waits until the newest rebalance gave it so many partitions."""

        def newest():
            changes = [line for line in self.notes if "rebalanced" in line]
            if not changes or "assigned:" not in changes[-1]:
                return None
            return changes[-1].count("[")

        until(lambda: newest() == partitions, lambda: f"{partitions} partitions: {self.notes}", 30)

    def terminate(self):
        """Lets kcat commit and leave the group."""
        self._child.terminate()
        self._finish()

    def kill(self):
        """kcat disappears without a word to the broker."""
        self._child.kill()
        self._finish()

    def _finish(self):
        self._child.wait(20)
        for reader in self._readers:
            reader.join(20)
