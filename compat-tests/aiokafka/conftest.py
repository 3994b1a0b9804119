import pytest

from clients import admin_client, create_topic


@pytest.fixture
async def admin(bootstrap):
    async with admin_client(bootstrap) as client:
        yield client


@pytest.fixture
async def new_topic(admin):
    """Creates topics that are deleted after the test."""
    names = []

    async def create(partitions=1, **config):
        names.append(await create_topic(admin, partitions, **config))
        return names[-1]

    yield create
    if names:
        # The answer is of no interest: the test may have deleted its topic itself.
        await admin.delete_topics(names)
