import pytest

from clients import admin_client, create_topic


@pytest.fixture(scope="session")
def admin(bootstrap):
    return admin_client(bootstrap)


@pytest.fixture
def new_topic(admin):
    """Creates topics that are deleted after the test."""
    names = []

    def create(partitions=1, **config):
        names.append(create_topic(admin, partitions, **config))
        return names[-1]

    yield create
    if names:
        for future in admin.delete_topics(names).values():
            # The test may have deleted its topic itself; what follows is only tidying up.
            future.exception(20)
