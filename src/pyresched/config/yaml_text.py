"""YAML as people expect it: no key twice, no dates, no base-60 numbers, bounded merging.

Relies on pyyaml, an optional dependency: only `config.reading` imports this module, late.
"""

import re
from typing import Final

import yaml

__all__ = ["parse"]

# `<<` copies keys, and merges of merges copy them again: this stops a bomb, not a person.
_MOST_MERGED: Final = 10_000


# libyaml is several times as fast and bounds nesting; pyyaml may come without it.
_Base: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc]  # chosen at run time
    """pyyaml's safe loader without the readings of YAML 1.1 that surprise (`no`, `1:30`)."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        self._refuse_twice(node)
        own = len(node.value)
        super().flatten_mapping(node)
        if len(node.value) - own > _MOST_MERGED:
            raise yaml.constructor.ConstructorError(
                None, None, f"merges more than {_MOST_MERGED} keys", node.start_mark
            )

    @staticmethod
    def _refuse_twice(node: yaml.MappingNode) -> None:
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if (key.tag, key.value) in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key.value!r} is written twice; keep one", key.start_mark
                )
            seen.add((key.tag, key.value))


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+.0123456789",
    ),
    ("merge", r"<<", "<"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), list(_first)
    )


def parse(text: str) -> object:
    """The one document in *text*. Raises ValueError with line, column and what is wrong."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as bad:
        mark = bad.problem_mark or bad.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise ValueError(f"{where}{bad.problem or bad.context}") from None
    except yaml.YAMLError as bad:
        # A character that YAML forbids: the first line names it, the rest is a position.
        raise ValueError(" ".join(str(bad).split())) from None
