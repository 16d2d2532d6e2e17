"""The shared data: found, or skipped, or failed; never quietly left out."""

import pytest
from _pytest.outcomes import Failed, Skipped

from kit import shared


def test_missing_data_skips_the_test_but_fails_it_in_ci(tmp_path, monkeypatch) -> None:
    """CI=true makes a skip an error."""
    monkeypatch.setattr(shared, "_candidates", lambda: [tmp_path / "none"])
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(Skipped, match="no folder `shared`"):
        shared.shared_path("vectors")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(Failed, match="CI=true"):
        shared.shared_path("vectors")


def test_a_file_that_the_data_lacks_is_a_failure_anywhere(tmp_path, monkeypatch) -> None:
    """A typo in a path is no missing data."""
    (tmp_path / "there").write_text("")
    monkeypatch.setattr(shared, "_candidates", lambda: [tmp_path])
    monkeypatch.delenv("CI", raising=False)
    assert shared.shared_path("there") == tmp_path / "there"
    with pytest.raises(Failed, match="has no a/b"):
        shared.shared_path("a", "b")
