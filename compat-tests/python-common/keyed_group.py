"""What the checks of keyed delivery share: a group whose members report all that they begin and end.

The folder of each client has a module `keyed_client` with
    TRAITS                                   what is said of the client in keyed_checks.py
    new_topic(bootstrap, **config) -> name   named keyed-..., with PARTITIONS partitions
    open_sender(bootstrap) -> sender         with send(topic, [(key, number)]) and close()
    join(place, **options) -> leave          starts a consumer; leave() ends it in an orderly way
    lag(bootstrap, group, topic) -> int      log ends minus committed offsets, as a tool does it
"""

import subprocess
import sys
import threading
import time
from pathlib import Path

import keyed_client
from broker_suite import unique, until
from keyed_place import Place
from keyed_sentinel import Sentinel
from wire_proxy import Proxy

PARTITIONS = 6
LANE_OFFSETS = 2**44


def key_names(count, label="key"):
    return [f"{label}-{index}" for index in range(count)]


def rounds(keys, start, stop):
    """The records `start` to `stop` (exclusive) of every key, round by round."""
    return [(key, number) for number in range(start, stop) for key in keys]


class KeyedGroup:
    def __init__(self, bootstrap, partitions=PARTITIONS, **config):
        self.bootstrap = bootstrap
        self.topic = keyed_client.new_topic(bootstrap, partitions, **config)
        self.group = unique("keyed-group")
        self.sentinel = Sentinel()
        self.failures = []
        self._partitions = partitions
        self._leaves = {}
        self._children = []
        self._flows = []
        self._proxies = []
        self._sender = keyed_client.open_sender(bootstrap)

    def send(self, records):
        self._sender.send(self.topic, records)

    def join(self, name, handle=lambda record: None, bootstrap=None, **options):
        def watched(record):
            self.sentinel.begin(name, record.key, record.number)
            handle(record)
            self.sentinel.end(name, record.key, record.number)

        place = Place(
            bootstrap or self.bootstrap,
            name,
            self.group,
            self.topic,
            watched,
            self.failures.append,
            **options,
        )
        self._leaves[name] = keyed_client.join(place)

    def leave(self, name):
        self._leaves.pop(name)()
        assert self.failures == []

    def join_process(self, name, pace):
        """A member in a process of its own, which can be killed. Each record takes `pace` seconds."""
        script = Path(__file__).with_name("keyed_member.py")
        place = [self.bootstrap, name, self.group, self.topic, str(pace)]
        child = subprocess.Popen(
            [sys.executable, script, *place],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._children.append(child)

        def follow():
            for line in child.stdout:
                event, key, number = line.split()
                note = self.sentinel.begin if event == "begin" else self.sentinel.end
                note(name, key, int(number))

        reader = threading.Thread(target=follow, daemon=True)
        reader.start()

        def kill():
            child.kill()
            child.wait()
            # What it wrote before it died is still to be read.
            reader.join()
            self.sentinel.drop(name)

        return kill

    def flow(self, records_of_round, every):
        """Sends the records of one round after the other; what is returned stops that and tells how
        many there were."""
        quit_flow = threading.Event()
        counts = []

        def run():
            sender = keyed_client.open_sender(self.bootstrap)
            try:
                while not quit_flow.is_set():
                    records = records_of_round(len(counts))
                    sender.send(self.topic, records)
                    counts.append(len(records))
                    quit_flow.wait(every)
            except Exception as error:  # the check looks at it
                self.failures.append(error)
            sender.close()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()

        def stop():
            quit_flow.set()
            thread.join()
            return sum(counts)

        self._flows.append(stop)
        return stop

    def proxy(self):
        self._proxies.append(Proxy(self.bootstrap))
        return self._proxies[-1]

    def lag(self):
        return keyed_client.lag(self.bootstrap, self.group, self.topic, self._partitions)

    def finished(self, seconds=20.0):
        lags = []

        def done():
            lags.append(self.lag())
            return lags[-1] == 0

        until(done, lambda: f"lag 0: {lags[-1]}, {self.sentinel.handled} handled", seconds, 0.05)
        assert self.failures == []

    def close(self):
        for stop in self._flows:
            stop()
        for leave in self._leaves.values():
            leave()
        for child in self._children:
            child.kill()
        self._sender.close()
        for proxy in self._proxies:
            proxy.close()


def takes(seconds):
    return lambda record: time.sleep(seconds)
