import pytest
from kafka import KafkaAdminClient

from clients import create_topic


@pytest.fixture(scope="session")
def admin(bootstrap):
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    yield client
    client.close()


@pytest.fixture
def new_topic(admin):
    """Creates topics that are deleted after the test."""
    names = []

    def create(partitions=1, **config):
        names.append(create_topic(admin, partitions, **config))
        return names[-1]

    yield create
    if names:
        # The test may have deleted its topic itself; what follows is only tidying up.
        admin.delete_topics(names, raise_errors=False)
