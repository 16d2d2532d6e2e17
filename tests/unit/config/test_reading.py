"""Files: each syntax, and every way in which one can be bad."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct

from pyresched.config import load_config, load_nodes, reading
from pyresched.config.reading import decode, read_mapping
from pyresched.errors import ConfigError, InputError, MissingExtra
from pyresched.model import RescheduleBlock, TaintEffect

TOML = 'lease_duration = "30s"\n[[queues]]\nname = "a"\nweight = 2\n'
YAML = "lease_duration: 30s\nqueues:\n  - {name: a, weight: 2}\n"
JSON = '{"lease_duration": "30s", "queues": [{"name": "a", "weight": 2}]}'


class Leaf(Struct, frozen=True, forbid_unknown_fields=True):
    """A struct with one field of each kind."""

    text: str = ""
    number: Annotated[int, Meta(ge=0)] = 0
    either: str | int | float | None = None
    names: dict[str, str] = {}
    both: str | int = ""
    rows: tuple[tuple[str, ...], ...] = ()
    block: RescheduleBlock | None = None
    effect: TaintEffect = TaintEffect.NO_EXECUTE


def written(folder: Path, name: str, content: str | bytes) -> Path:
    """A file of *content*."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_toml_yaml_and_json_of_the_same_say_the_same(tmp_path: Path) -> None:
    """The ending of the name chooses the syntax, nothing else."""
    files = [("c.toml", TOML), ("c.yaml", YAML), ("c.YML", YAML), ("c.json", JSON)]
    configs = [load_config(written(tmp_path, name, text)) for name, text in files]
    assert configs[0].lease_duration == 30 * 10**9
    assert all(config == configs[0] for config in configs)


@pytest.mark.parametrize("name", ["c.toml", "c.yaml"])
def test_an_empty_file_is_the_default(tmp_path: Path, name: str) -> None:
    """Nothing written is nothing wrong; a byte order mark is nothing written."""
    assert load_config(written(tmp_path, name, b"\xef\xbb\xbf\n")) == load_config(
        written(tmp_path, "other.json", "{}")
    )


@pytest.mark.parametrize(
    ("name", "content", "right"),
    [
        ("c.conf", "", "name it with one of .toml, .yaml, .yml, .json"),
        ("c", "", "name it with one of"),
        ("c.toml", b"\xff\xfe\x00junk", "byte 0 is not UTF-8 text"),
        ("c.toml", bytes(range(128)), "line 1"),
        ("c.yaml", b"a: \x00", "line 1 has a NUL character"),
        ("c.json", b"\x00", "line 1 has a NUL character"),
        ("c.toml", "a = ", "at end of document"),
        ("c.toml", "a = 1\na = 2\n", "(at line 2"),
        ("c.yaml", "a: 1\n b: 2", "line 2, column 3"),
        ("c.yaml", "pools: []\npools: []", "'pools' is written twice"),
        ("c.json", '{"queues": [], "pools": [], "pools": []}', "'pools' is written twice"),
        ("c.json", '{"pools": [}', "line 1, column 12"),
        ("c.json", '{"protected_fraction": NaN}', "NaN is not a number"),
        ("c.json", "[1]", "a list at the top"),
        ("c.yaml", "text", "write keys with values"),
        ("c.yaml", "a: !!python/object:os.system x", "could not determine a constructor"),
        ("c.yaml", "--- {}\n--- {}", "line 2"),
        ("c.yaml", "? [1]\n: 2", "line 1"),
        ("c.yaml", "1: 2", "key 1 is not text"),
        ("c.json", "[" * 100_000, "nested too deeply"),
        ("c.yaml", "[" * 10_000, "nest"),
        ("c.toml", "a = " + "[" * 10_000, "nested too deeply"),
        ("c.yaml", "queues: &q\n  - *q\n", "queues[0]: this is a list"),
        ("c.json", "9" * 5000, ""),
    ],
)
def test_a_bad_file_is_one_line_that_names_it(
    tmp_path: Path, name: str, content: str | bytes, right: str
) -> None:
    """Broken, binary, nested or senseless content is a ConfigError, never a traceback."""
    path = written(tmp_path, name, content)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert right in message
    assert "\n" not in message


def test_a_missing_file_and_a_directory_are_named(tmp_path: Path) -> None:
    """So are names that no file can have."""
    (tmp_path / "d.toml").mkdir()
    for name, what in (
        ("missing.toml", "No such file or directory"),
        ("d.toml", "Is a directory"),
        ("nul\0.toml", "not a file name"),
    ):
        with pytest.raises(ConfigError, match=f"{what}; name a file that can be read"):
            load_config(tmp_path / name)


def test_a_bad_node_file_is_an_input_error_but_not_of_the_configuration(tmp_path: Path) -> None:
    """Each kind of file has its own error type."""
    with pytest.raises(InputError) as caught:
        read_mapping(tmp_path / "missing.yaml")
    assert not isinstance(caught.value, ConfigError)
    with pytest.raises(InputError, match=r"nodes\.yaml: nodez: unknown key; did you mean 'nodes'"):
        load_nodes(written(tmp_path, "nodes.yaml", "nodez: []"), load_config_of_nothing(tmp_path))


def load_config_of_nothing(folder: Path):
    """The default configuration, by way of a file."""
    return load_config(written(folder, "nothing.toml", ""))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("true", True),
        ("1:30", "1:30"),
        ("2020-01-01", "2020-01-01"),
        ("010", "010"),
        ("12", 12),
        ("-3", -3),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("30s", "30s"),
        ("~", None),
        ("'12'", "12"),
    ],
)
def test_yaml_scalars_mean_what_they_look_like(tmp_path: Path, text: str, value: object) -> None:
    """Booleans are true and false only; no dates, no octal, no base 60."""
    read = read_mapping(written(tmp_path, "a.yaml", f"a: {text}"))["a"]
    assert read == value
    assert type(read) is type(value)


def test_yaml_anchors_and_merges_work(tmp_path: Path) -> None:
    """Aliases are values again, and a merged key may be overridden."""
    text = "base: &b {x: 1, y: 2}\nmore: {<<: *b, y: 3}\nagain: *b\n"
    read = read_mapping(written(tmp_path, "a.yaml", text))
    assert read == {"base": {"x": 1, "y": 2}, "more": {"x": 1, "y": 3}, "again": {"x": 1, "y": 2}}


def test_a_table_of_many_keys_is_no_bomb(tmp_path: Path) -> None:
    """Only merged keys are counted."""
    text = "".join(f"k{i}: 1\n" for i in range(12_000))
    assert len(read_mapping(written(tmp_path, "a.yaml", text))) == 12_000


@pytest.mark.parametrize("bomb", ["values", "merges"])
def test_a_yaml_bomb_is_refused_at_once(tmp_path: Path, bomb: str) -> None:
    """Twenty lines that stand for billions of values take no time."""
    if bomb == "values":
        lines = ["a0: &a0 [{name: x}]"]
        lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 20)]
        lines += ["queues: *a19"]
    else:
        lines = ["a0: &a0 {x: 1}"]
        lines += [f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 10)}]}}" for i in range(1, 20)]
    path = written(tmp_path, "c.yaml", "\n".join(lines))
    begun = time.monotonic()
    with pytest.raises(ConfigError):
        load_config(path)
    assert time.monotonic() - begun < 10


def test_values_are_counted_up_to_a_limit(monkeypatch) -> None:
    """A hundred aliases of a hundred aliases are as many values as it says."""
    monkeypatch.setattr(reading, "_MOST_VALUES", 1000)
    row = ["x"] * 100
    # The table, the list of rows, and 101 values a row.
    assert decode({"rows": [row] * 9}, Leaf).rows[8] == tuple(row)
    assert decode({"rows": [[*row, "x"], *[row] * 8, ["x"] * 87]}, Leaf)
    with pytest.raises(InputError, match=r"^more than 1000 values; split it$"):
        decode({"rows": [[*row, "x"], *[row] * 8, ["x"] * 88]}, Leaf)
    with pytest.raises(InputError, match=r"^more than 1000 values; split it$"):
        decode({"rows": [row] * 1000}, Leaf)


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"text": 1}, "text: 1 is not right here; write text"),
        ({"text": None}, "text: nothing is written; write text"),
        ({"text": ["x"]}, "text: this is a list; write text"),
        ({"number": True}, "number: true is not right here; write a whole number"),
        ({"number": 1.5}, "number: 1.5 is not right here; write a whole number"),
        ({"number": -1}, "Expected `int` >= 0 - at `$.number`"),
        ({"either": []}, "either: this is a list; write text or a whole number or a finite number"),
        ({"either": float("inf")}, "either: inf is not right here; write text or"),
        ({"names": {"a b": 1}}, 'names."a b": 1 is not right here; write text'),
        ({"names": {1: "x"}}, "names: key 1 is not text; put it in quotes"),
        ({"text": 10**100}, f"text: 1{'0' * 63}... is not right here"),
        ({"text": int("9" * 64)}, f"text: {'9' * 64} is not right here"),
        ({"both": None}, "both: nothing is written; write text or a whole number"),
        ({"rows": [["a"], "b"]}, "rows[1]: 'b' is not right here; write a list, each item text"),
        ({"block": 3}, "block: 3 is not right here; write a table with keys such as attempts, int"),
        ({"block": {"delay": []}}, "block.delay: [] is not a duration; write"),
        ({"effect": "noexecute"}, "effect: 'noexecute' is not one of them; did you mean 'NoEx"),
        ({"effect": []}, "effect: [] is not one of them; known: NoSchedule, NoExecute, Prefer"),
    ],
)
def test_a_value_of_the_wrong_kind_says_which_is_right(given_: dict, message: str) -> None:
    """The path of the key, the value, and the kind that is wanted."""
    with pytest.raises(InputError) as caught:
        decode(given_, Leaf)
    assert str(caught.value).startswith(message)
    assert len(str(caught.value)) < 200


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = st.sampled_from(["text", "number", "either", "names", "nmaes"])


@given(st.dictionaries(KEYS, JUNK, max_size=4))
def test_no_value_raises_anything_but_an_input_error(given_: dict) -> None:
    """Whatever is written, the answer is a struct or an InputError."""
    try:
        assert isinstance(decode(given_, Leaf), Leaf)
    except InputError as bad:
        assert str(bad)  # noqa: PT017


def test_yaml_without_its_package_says_what_to_install(tmp_path, monkeypatch) -> None:
    """The other formats need nothing."""
    monkeypatch.setitem(sys.modules, "pyresched.config.yaml_text", None)
    with pytest.raises(MissingExtra, match=r"install pyresched\[cli\], or write TOML or JSON"):
        load_config(written(tmp_path, "c.yaml", YAML))
    assert load_config(written(tmp_path, "c.toml", TOML)).queues[0].name == "a"


def test_yaml_reads_the_same_without_libyaml(tmp_path) -> None:
    """The loader in Python stands in where the fast one is not built."""
    code = (
        "import sys, yaml; del yaml.CSafeLoader\n"
        "from pyresched.config.reading import read_mapping\n"
        "for name in sys.argv[1:]:\n"
        "    try: print(read_mapping(name))\n"
        "    except ValueError as bad: print(type(bad).__name__)\n"
    )
    texts = ["a: [no, 1:30, 010, 12, 1e3]", "b: &x {y: 1}\nc: {<<: *x}", "a: 1\na: 2", "[" * 10_000]
    names = [str(written(tmp_path, f"{i}.yaml", text)) for i, text in enumerate(texts)]
    done = subprocess.run(
        [sys.executable, "-c", code, *names], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "{'a': ['no', '1:30', '010', 12, 1000.0]}",
        "{'b': {'y': 1}, 'c': {'y': 1}}",
        "InputError",
        "InputError",
    ]
