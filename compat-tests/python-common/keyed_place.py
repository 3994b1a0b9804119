"""What a consumer of the checks of keyed delivery is told, and what it tells."""

from dataclasses import dataclass
from typing import Callable

# Kafka's own lower bound (group.min.session.timeout.ms).
SESSION_SECONDS = 6


@dataclass
class Delivery:
    key: str
    number: int
    partition: int
    offset: int


@dataclass
class Place:
    """Where a consumer is to be. What it is given to handle, it commits afterwards: each record
    (`commit_each`), all that it polled at once, or the client does so itself (`own_commits`)."""

    bootstrap: str
    name: str
    group: str
    topic: str
    handle: Callable[[Delivery], None]
    fail: Callable[[BaseException], None]
    commit_each: bool = False
    own_commits: bool = False
