"""Every operator as tables of facts: label value, what is wanted, whether it is accepted."""

import gc
import pickle

import msgspec
import pytest

from pyresched.errors import InputError
from pyresched.model import Constraint, Operator, Preference, Spread

ABSENT = None

# (operator, values) -> label values that are accepted, and that are not.
KUBERNETES = {
    ("In", ("a", "b")): (["a", "b"], ["c", "", "A", ABSENT]),
    ("NotIn", ("a", "b")): (["c", "", "A", ABSENT], ["a", "b"]),
    ("Exists", ()): (["a", ""], [ABSENT]),
    ("DoesNotExist", ()): ([ABSENT], ["a", ""]),
    ("Gt", ("4",)): (["5", "10", "+5"], ["4", "3", "-5", "4.5", "five", "", " 5", "1_0", ABSENT]),
    ("Lt", ("4",)): (["3", "-10", "03"], ["4", "5", "3.5", "three", "", ABSENT]),
    # Neither a label nor a value beyond 64 bits is an integer there.
    ("Gt", ("0",)): (["9223372036854775807"], ["9223372036854775808"]),
    ("Lt", ("0",)): (["-9223372036854775808"], ["-9223372036854775809"]),
}
NOMAD = {
    ("=", ("a",)): (["a"], ["b", "", ABSENT]),
    ("!=", ("a",)): (["b", "", ABSENT], ["a"]),
    # An absent label is compared as "" by this operator alone.
    ("!=", ("",)): (["a"], ["", ABSENT]),
    ("is_set", ()): (["a", ""], [ABSENT]),
    ("is_not_set", ()): ([ABSENT], ["a", ""]),
    # As integers when both are: 9 is below 10.
    ("<", ("10",)): (["9", "-1", "009"], ["10", "11", ABSENT]),
    ("<=", ("10",)): (["9", "10"], ["11", ABSENT]),
    (">", ("10",)): (["11", "100"], ["10", "9", ABSENT]),
    (">=", ("10",)): (["10", "11"], ["9", ABSENT]),
    # Else as numbers when both are.
    (">", ("1.5",)): (["2", "1.50001", "1e1"], ["1.5", "1", "0.9e0"]),
    ("<", ("1e3",)): (["999.9", ".5"], ["1000", "1e4"]),
    # Else as text, in which "9" is above "10a", and digits are below letters.
    (">", ("10a",)): (["9", "10b"], ["10", "10a"]),
    ("<", ("b",)): (["a", "10", "", "B"], ["b", "c"]),
    ("regexp", ("b+",)): (["b", "abba"], ["a", "", "B", ABSENT]),
    ("regexp", ("^v[0-9]$",)): (["v1"], ["v10", "xv1", "v1\n"]),
    ("set_contains", ("a, b",)): (["b,c,a", "a , b"], ["a", "ab", "", ABSENT]),
    ("set_contains_any", ("a, b",)): (["b,c", " a "], ["c", "ab", "", ABSENT]),
    ("version", (">= 1.2, < 2",)): (
        ["1.2", "1.2.0", "v1.9.9", "1.10"],
        ["1.1.9", "2", "2.0.0", "1.5.0-beta", "one", "", ABSENT],
    ),
    ("version", (">= 1.2.0-beta",)): (
        ["1.2.0-beta", "1.2.0-rc1", "1.2.0", "1.3.0"],
        ["1.2.0-alpha", "1.3.0-beta"],
    ),
    ("version", ("~> 1.2.3",)): (["1.2.3", "1.2.9"], ["1.2.2", "1.3.0", "2.0.0"]),
    ("version", ("~> 1.2",)): (["1.2", "1.9.9"], ["1.1", "2.0"]),
    ("version", ("1.2",)): (["1.2", "1.2.0", "v1.2.0+build7"], ["1.2.1", "1.2.0-beta"]),
    ("version", ("!= 1.2",)): (["1.2.1", "1.2.0-beta"], ["1.2", ABSENT]),
    ("semver", (">= 1.2.0, < 2.0.0",)): (
        ["1.2.0", "1.5.0-beta", "2.0.0-alpha", "1.2.0+build7"],
        ["1.2.0-beta", "2.0.0", "1.5beta", "one", ABSENT],
    ),
    # The order of pre-releases in Semantic Versioning 2.0, 11.4.
    ("semver", ("> 1.0.0-alpha",)): (
        ["1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-rc.1", "1.0.0"],
        ["1.0.0-alpha", "1.0.0-1", "0.9.0"],
    ),
    ("semver", ("> 1.0.0-beta.2",)): (["1.0.0-beta.11", "1.0.0-rc.1"], ["1.0.0-beta", "1.0.0-1"]),
}
FACTS = [
    (operator, values, had, accepted)
    for (operator, values), (good, bad) in [*KUBERNETES.items(), *NOMAD.items()]
    for had, accepted in [*((each, True) for each in good), *((each, False) for each in bad)]
]


@pytest.mark.parametrize(("operator", "values", "had", "accepted"), FACTS)
def test_operators_mean_what_they_mean_where_they_come_from(operator, values, had, accepted):
    """Kubernetes' and Nomad's, an absent label included."""
    assert Constraint("x", Operator(operator), values).accepts(had) is accepted


def test_every_operator_has_facts():
    """One that is added has to be told about, here or under distinct."""
    told = {operator for operator, *_ in FACTS} | {"distinct_hosts", "distinct_property"}
    assert told == {operator.value for operator in Operator}


@pytest.mark.parametrize(
    ("spelling", "operator"),
    [
        ("==", Operator.EQUAL),
        ("is", Operator.EQUAL),
        ("not", Operator.NOT_EQUAL),
        ("set_contains_all", Operator.SET_CONTAINS),
        *((each.value, each) for each in Operator),
    ],
)
def test_operators_are_read_in_every_spelling(spelling, operator):
    """From a file as well; and written in one."""
    assert Operator(spelling) is operator
    values = {Operator.IN: ["a"], Operator.NOT_IN: ["a"], Operator.GT: ["1"], Operator.LT: ["1"]}
    one_value = {"=", "!=", "<", "<=", ">", ">=", "regexp", "set_contains", "set_contains_any"}
    written = values.get(operator, ["1"] if operator in {*one_value, "version", "semver"} else [])
    label = "" if operator is Operator.DISTINCT_HOSTS else "x"
    read = msgspec.convert({"label": label, "operator": spelling, "values": written}, Constraint)
    assert read.operator is operator
    assert msgspec.json.decode(msgspec.json.encode(read), type=Constraint) == read
    assert pickle.loads(pickle.dumps(read)) == read  # noqa: S301 - our own bytes


def test_distinct_constraints_have_a_limit_and_ask_little_of_a_node_itself():
    """Distinct hosts: one job on each. A property: one or so many, and the label must be there."""
    hosts = Constraint("", Operator.DISTINCT_HOSTS)
    assert hosts == Constraint("", Operator.DISTINCT_HOSTS, ("true",))
    assert hosts == Constraint("", Operator.DISTINCT_HOSTS, ("",))
    assert (hosts.distinct, hosts.limit, hosts.accepts(None)) == (True, 1, True)
    off = Constraint("", Operator.DISTINCT_HOSTS, ("false",))
    assert (off.distinct, off.limit) == (False, 0)
    rack = Constraint("rack", Operator.DISTINCT_PROPERTY)
    assert rack == Constraint("rack", Operator.DISTINCT_PROPERTY, ("1",))
    assert (rack.distinct, rack.limit) == (True, 1)
    assert Constraint("rack", Operator.DISTINCT_PROPERTY, ("3",)).limit == 3
    assert (rack.accepts("r1"), rack.accepts(""), rack.accepts(None)) == (True, True, False)
    assert not Constraint("rack", Operator.EXISTS).distinct


def test_values_of_a_set_have_no_order():
    """In and NotIn are equal however they were written, so that alike jobs have one key."""
    assert Constraint("x", Operator.IN, ("b", "a", "b")) == Constraint("x", Operator.IN, ("a", "b"))
    first, second = Constraint("x", Operator.EXISTS), Constraint("y", Operator.EXISTS)
    assert Preference(1, (second, first, first)) == Preference(1, (first, second))
    assert Spread("x", 1, (("b", 2), ("a", 1))) == Spread("x", 1, (("a", 1), ("b", 2)))


@pytest.mark.parametrize(
    ("label", "operator", "values", "message"),
    [
        ("", Operator.IN, ("a",), "constraint In: label ''; write the name of a label"),
        ("x", Operator.IN, (), "constraint In on 'x': 0 values; write at least one"),
        ("x", Operator.NOT_IN, (), "0 values; write at least one"),
        ("x", Operator.EXISTS, ("a",), "1 values; write none"),
        ("x", Operator.DOES_NOT_EXIST, ("a",), "write none"),
        ("x", Operator.IS_SET, ("a",), "write none"),
        ("x", Operator.IS_NOT_SET, ("a",), "write none"),
        ("x", Operator.GT, ("1", "2"), "2 values; write exactly one"),
        ("x", Operator.GT, ("four",), "'four' is no 64-bit integer; write one like 4"),
        ("x", Operator.LT, ("1.5",), "no 64-bit integer"),
        ("x", Operator.LT, ("9223372036854775808",), "no 64-bit integer"),
        ("x", Operator.EQUAL, (), "0 values; write exactly one"),
        ("x", Operator.REGEXP, ("a(",), "'a(' is no regular expression"),
        ("x", Operator.VERSION, ("about 2",), "no comparison with a version; write something"),
        ("x", Operator.VERSION, (">= 1.2,",), "no comparison with a version"),
        ("x", Operator.SEMVER, ("~> 1.2.0",), "write something like '>= 1.2.0, < 2.0.0'"),
        ("x", Operator.SEMVER, ("1.2beta",), "no comparison with a version"),
        ("x", Operator.DISTINCT_HOSTS, (), "takes no label, got 'x'; drop it"),
        ("", Operator.DISTINCT_HOSTS, ("maybe",), "'maybe'; write true or false"),
        ("x", Operator.DISTINCT_PROPERTY, ("0",), "limit '0'; write a number from 1 on"),
        ("x", Operator.DISTINCT_PROPERTY, ("1", "2"), "2 values; write at most one"),
        ("x", "near", ("a",), "operator 'near' is not known"),
        ("x", "in", ("a",), "did you mean 'In'?"),
        ("x", Operator.IN, ["a"], "values is a tuple, got"),
        ("x", Operator.IN, (1,), "value 1 is no text; write it in quotes"),
        ("x", Operator.IN, ("a" * 1025,), "has 1025 characters; write at most 1024"),
        ("x" * 1025, Operator.IN, ("a",), "has 1025 characters"),
    ],
)
def test_a_constraint_that_cannot_be_is_refused_when_it_is_made(label, operator, values, message):
    """By name, with what would be right; never when it is matched."""
    with pytest.raises(InputError) as bad:
        Constraint(label, operator, values)
    assert message in str(bad.value)
    assert "\n" not in str(bad.value)


EXISTS = Constraint("x", Operator.EXISTS)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Preference(0, (EXISTS,)), "weight 0; write a whole number from -100 to 100"),
        (lambda: Preference(101, (EXISTS,)), "weight 101"),
        (lambda: Preference(1.5, (EXISTS,)), "weight 1.5"),
        (lambda: Preference(1, [EXISTS]), "constraints is a tuple of Constraint"),
        (lambda: Preference(1, ("x",)), "tuple of Constraint, got ('x',)"),
        (
            lambda: Preference(1, (Constraint("", Operator.DISTINCT_HOSTS),)),
            "distinct_hosts is no preference; put it under constraints",
        ),
        (lambda: Spread(""), "spread: label ''"),
        (lambda: Spread("x", 0), "spread over 'x': weight 0; write a whole number from 1 to 100"),
        (lambda: Spread("x", 101), "spread over 'x': weight 101"),
        (lambda: Spread("x", 1, (("a", 60), ("b", 41))), "targets make 101 percent"),
        (lambda: Spread("x", 1, (("a", -1),)), "-1 percent for 'a'; write 0 to 100"),
        (lambda: Spread("x", 1, (("a", 1), ("a", 2))), "target 'a' is there twice"),
        (lambda: Spread("x", 1, ("a",)), "target 'a'; write a value and its percent"),
        (lambda: Spread("x", 1, [("a", 1)]), "targets is a tuple"),
    ],
)
def test_a_preference_or_spread_that_cannot_be_is_refused(make, message):
    """The field, its value and what would be right."""
    with pytest.raises(InputError) as bad:
        make()
    assert message in str(bad.value)


def test_the_share_of_a_value_is_its_target_or_what_the_targets_leave():
    """As Nomad's implicit target."""
    spread = Spread("x", 50, (("a", 50), ("b", 30)))
    assert [spread.percent_of(value) for value in "abc"] == [50, 30, 20]
    assert Spread("x", 50, (("a", 100),)).percent_of("b") == 0


def test_values_are_frozen_and_seen_by_no_collector():
    """They are shared by a million jobs."""
    for value in (EXISTS, Preference(1, (EXISTS,)), Spread("x")):
        assert hash(value) == hash(pickle.loads(pickle.dumps(value)))  # noqa: S301
        assert not gc.is_tracked(value)
        with pytest.raises(AttributeError):
            value.weight = 2
