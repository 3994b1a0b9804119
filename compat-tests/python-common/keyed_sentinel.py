"""Watches over the order of each key in keyed delivery."""

import threading
import time
from collections import defaultdict

from broker_suite import until


class Sentinel:
    """Notes what all consumers of a group do. Per key, records are numbered from 0 on; at most one
    may be in work at a time, and none may be begun before the one in front of it is done. A record
    that comes again is counted: whoever provokes a failure decides how many are right."""

    def __init__(self):
        self._lock = threading.Lock()
        self.in_work = {}
        self.next = defaultdict(int)
        self.faults = []
        self.handled = 0
        self.repeated = 0
        # How many of these came to somebody who had not done them before.
        self.repeated_elsewhere = 0
        self._done_by = {}
        self.handled_by = defaultdict(int)
        self._last = {}
        self._pause = defaultdict(float)

    def begin(self, who, key, number):
        with self._lock:
            if key in self.in_work:
                self.faults.append(f"{key}/{number} at {who} and at {self.in_work[key]}")
            if number > self.next[key]:
                self.faults.append(f"{key}/{number} before {key}/{self.next[key]}, at {who}")
            self.in_work[key] = who
            now = time.monotonic()
            self._pause[who] = max(self._pause[who], now - self._last.get(who, now))
            self._last[who] = now

    def end(self, who, key, number):
        with self._lock:
            self.in_work.pop(key, None)
            self.handled_by[who] += 1
            if number < self.next[key]:
                self.repeated += 1
                self.repeated_elsewhere += self._done_by[key, number] != who
            else:
                self._done_by[key, number] = who
                self.next[key] = number + 1
                self.handled += 1

    def drop(self, who):
        """Forgets what a consumer has in work that was killed."""
        with self._lock:
            self.in_work = {key: owner for key, owner in self.in_work.items() if owner != who}

    def start_pauses(self):
        """Begins to measure the longest pause of each member."""
        with self._lock:
            self._last = dict.fromkeys(self._last, time.monotonic())
            self._pause.clear()

    def longest_pause(self, who):
        """The longest time in which a member began no record, up to now."""
        with self._lock:
            return max(self._pause[who], time.monotonic() - self._last[who])

    def behind(self, keys, count):
        """How many of the keys have not come to record number `count`."""
        with self._lock:
            return sum(self.next[key] < count for key in keys)

    def reached(self, count, seconds=30.0):
        def what():
            again = f"{self.repeated} of them again" if self.repeated else ""
            return f"{count} records are handled, {self.handled} are {again} {self.faults[:5]}"

        until(lambda: self.handled >= count, what, seconds)

    def assert_in_order(self):
        assert self.faults[:5] == []

    def assert_once(self, count, repeated_before=0):
        self.assert_in_order()
        assert (self.handled, self.repeated) == (count, repeated_before)
