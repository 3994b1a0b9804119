"""pytest plugin of the Python client suites: where the broker is, names nobody used before, and the
result line that every compat suite ends with."""

import os
import time
import uuid

import pytest

pytest.register_assert_rewrite("keyed_checks", "keyed_group", "keyed_sentinel")


def pytest_addoption(parser):
    parser.addoption("--bootstrap", required=True, help="HOST:PORT[,HOST:PORT...] of the broker")


def pytest_collection_modifyitems(items):
    """Longest first, so that no worker is left alone with a long test at the end."""
    items.sort(key=lambda item: 0 if item.get_closest_marker("slow") else 1)


def has_keyed_delivery():
    """Apache Kafka has none, and a Keylane of unknown settings may not have it for keyed-*."""
    return os.environ.get("COMPAT_BROKER") == "keylane"


def pytest_ignore_collect(collection_path):
    if collection_path.name == "test_keyed.py" and not has_keyed_delivery():
        return True


def pytest_configure(config):
    if not has_keyed_delivery() and not hasattr(config, "workerinput"):
        print("the checks of keyed delivery are left out: COMPAT_BROKER is not keylane", flush=True)
    config.addinivalue_line("markers", "slow: takes several seconds; started first")
    config.addinivalue_line("markers", "thorough: left out by FAST=1")


def pytest_unconfigure(config):
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(config, "workerinput"):
        return
    counts = {kind: len(reports) for kind, reports in reporter.stats.items()}
    # A check that cannot run proves nothing, so whatever is not passed counts as failed.
    failed = sum(counts.get(kind, 0) for kind in ("failed", "error", "skipped", "xfailed"))
    print(f"{counts.get('passed', 0)} passed, {failed} failed", flush=True)


@pytest.fixture(scope="session")
def bootstrap(request):
    return request.config.getoption("--bootstrap")


def unique(prefix):
    """A name for a topic or group that no other run on the same broker has."""
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


def until(condition, what, seconds=20.0, pause=0.02):
    """Polls `condition` until it gives something true and returns that. `what` names it in the
    failure; a condition that waits by itself wants no pause."""
    deadline = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what() if callable(what) else what}")
        time.sleep(pause)
