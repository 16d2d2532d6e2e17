"""Results appear whole or not at all."""

import gzip
from pathlib import Path

import pytest

from pyresched.errors import InputError
from pyresched.simulator.placing import Existing, check_target, new_file, new_folder


def contents(folder: Path) -> dict[str, str]:
    """What is in *folder*, files that begin with a dot included."""
    return {path.name: path.read_text() for path in sorted(folder.iterdir()) if path.is_file()}


def write_half(target: Path, existing: Existing, interruption: type[BaseException]) -> None:
    """Begin to write to *target*, then be interrupted."""
    with new_folder(target, existing) as aside:
        (aside / "x").write_text("half")
        raise interruption


def test_a_folder_appears_when_the_block_is_left(tmp_path: Path) -> None:
    """Not before, with its parents, readable by others as the mask says."""
    target = tmp_path / "a" / "b"
    with new_folder(target, Existing.REFUSE) as aside:
        (aside / "x").write_text("1")
        assert not target.exists()
    assert contents(target) == {"x": "1"}
    assert target.stat().st_mode & 0o055 == 0o055
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, RuntimeError])
def test_an_interruption_leaves_nothing(tmp_path: Path, interruption: type[BaseException]) -> None:
    """Neither the folder nor anything aside."""
    with pytest.raises(interruption):
        write_half(tmp_path / "out", Existing.REFUSE, interruption)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_is_refused_or_its_files_replaced(tmp_path: Path) -> None:
    """What is not ours stays; an interruption leaves the old files."""
    target = tmp_path / "out"
    target.mkdir()
    (target / "x").write_text("old")
    (target / "mine").write_text("kept")
    with pytest.raises(InputError, match="--force"):
        check_target(target, Existing.REFUSE)
    with pytest.raises(KeyError):
        write_half(target, Existing.REPLACE, KeyError)
    assert contents(target) == {"mine": "kept", "x": "old"}
    with new_folder(target, Existing.REPLACE) as aside:
        (aside / "x").write_text("new")
    assert contents(target) == {"mine": "kept", "x": "new"}


def test_what_is_no_folder_is_refused_before_any_work(tmp_path: Path) -> None:
    """A file, a place below a file, a place that cannot be written to, an odd name."""
    (tmp_path / "file").write_text("")
    for bad in (tmp_path / "file", tmp_path / "file" / "out", Path("/proc/out"), Path("a\0b")):
        with pytest.raises(InputError, match="choose"):
            check_target(bad, Existing.REPLACE)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_is_written_whole_and_packed_by_its_name(tmp_path: Path) -> None:
    """Packed twice, the bytes are the same."""
    new_file(tmp_path / "a.swf", ["1\n", "2\n"], Existing.REFUSE)
    assert (tmp_path / "a.swf").read_text() == "1\n2\n"
    new_file(tmp_path / "b.swf.gz", ["1\n"], Existing.REFUSE)
    new_file(tmp_path / "c.swf.gz", ["1\n"], Existing.REFUSE)
    packed = (tmp_path / "b.swf.gz").read_bytes()
    assert packed == (tmp_path / "c.swf.gz").read_bytes()
    assert packed[4:8] == bytes(4), "a packed file holds no time"
    assert gzip.decompress(packed) == b"1\n"


def test_an_existing_file_is_refused_or_replaced(tmp_path: Path) -> None:
    """And a folder is never replaced by a file."""
    path = tmp_path / "a.swf"
    path.write_text("old")
    with pytest.raises(InputError, match="is there already"):
        new_file(path, ["new"], Existing.REFUSE)
    assert path.read_text() == "old"
    new_file(path, ["new"], Existing.REPLACE)
    assert path.read_text() == "new"
    with pytest.raises(InputError, match="is a folder"):
        new_file(tmp_path, ["new"], Existing.REPLACE)
    with pytest.raises(InputError, match="no such file"):
        new_file(tmp_path / "none" / "a.swf", ["new"], Existing.REPLACE)
    assert contents(tmp_path) == {"a.swf": "new"}
