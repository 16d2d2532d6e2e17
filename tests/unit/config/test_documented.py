"""docs/configuration.md is what the configuration is: every key, and an example that loads."""

import re
import tomllib

import msgspec
import pytest

from kit.repository import ROOT
from pyresched.config import PoolConfig, SchedulingConfig, config_from
from pyresched.model import AwayEntry, PriorityClass, Queue, Resource, WellKnownNodeType

TEXT = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
HIDDEN = {"version"}  # the store counts it, nobody writes it


def section(title: str) -> str:
    """What stands between this heading and the next."""
    return re.split(r"^## ", TEXT.split(f"\n## {title}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def keys(table: str) -> set[str]:
    """The keys in the first column of the tables in a text."""
    first = re.findall(r"^\| (`[^|]*) \|", table, flags=re.MULTILINE)
    return {key for cell in first for key in re.findall(r"`(\w+)`", cell)}


@pytest.mark.parametrize(
    ("title", "structs"),
    [
        ("Top level", [SchedulingConfig]),
        ("`resources`", [Resource]),
        ("`priority_classes`", [PriorityClass, AwayEntry]),
        ("`node_types`", [WellKnownNodeType]),
        ("`pools`", [PoolConfig]),
        ("`queues`", [Queue]),
    ],
)
def test_every_key_is_there_and_no_other(title: str, structs: list[type[msgspec.Struct]]) -> None:
    """A key that comes or goes changes the page."""
    known = {field.name for each in structs for field in msgspec.structs.fields(each)}
    assert keys(section(title)) == known - HIDDEN


def test_the_example_loads() -> None:
    """As it stands, and it says more than the defaults."""
    (example,) = re.findall(r"```toml\n(.*?)```", TEXT, flags=re.DOTALL)
    config = config_from(tomllib.loads(example))
    assert config.levels == (10, 100, 1000)
    assert config.has_floating
