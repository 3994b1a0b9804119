"""One consumer as a process of its own, so that it can be killed:
keyed_member.py BOOTSTRAP NAME GROUP TOPIC PACE. Its parent reads `event key number` lines."""

import os
import sys
import time

sys.path.insert(0, os.getcwd())

import keyed_client  # noqa: E402
from keyed_place import Place  # noqa: E402

bootstrap, name, group, topic, pace = sys.argv[1:]


def handle(record):
    print("begin", record.key, record.number, flush=True)
    time.sleep(float(pace))
    print("end", record.key, record.number, flush=True)


def fail(error):
    print(error, file=sys.stderr, flush=True)


keyed_client.join(Place(bootstrap, name, group, topic, handle, fail))
# The parent may die without killing this process.
sys.stdin.read()
os._exit(0)
