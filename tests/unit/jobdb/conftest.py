"""A job db whose invariants are checked when the test ends."""

from collections.abc import Iterator

import pytest

from pyresched.jobdb import JobDb


@pytest.fixture
def db() -> Iterator[JobDb]:
    """An empty job db under the default configuration; sound again after the test."""
    db = JobDb()
    yield db
    assert db.check(db.snapshot()) == []
