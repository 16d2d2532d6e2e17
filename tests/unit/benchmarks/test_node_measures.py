"""What the placement lines compare: the same jobs on the same nodes, and the same answer."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import gates
from measures import cluster as clusters
from measures import holding, placing
from measures.cluster import POOL, Mismatch, alike, balanced, lopsided, nearly_full, opposed
from rivals import ordered_walk
from rivals.nodes import SortedNodes
from rivals.ordered_walk import NoCompiler, OrderedWalk

MIXES = {
    "balanced": partial(balanced, 40, 900),
    "lopsided": partial(lopsided, 40, 900),
    "opposed": partial(opposed, 40, 900),
    "alike": partial(alike, 10, 320),
    "more than there is room for": lambda: halved(balanced(40, 900)),
}


def halved(cluster):
    """The same with half of each node."""
    return replace(cluster, totals=cluster.totals // 2)


@pytest.mark.parametrize("who", placing.MAKERS)
@pytest.mark.parametrize("mix", MIXES)
def test_rivals_place_every_job_where_ours_does(who, mix):
    """All jobs in turn, those too that find no room."""
    cluster = MIXES[mix]()
    rival = placing.MAKERS[who](cluster.totals)
    everything = slice(0, cluster.jobs)
    cluster.compare(who, placing.place_with(who, rival, cluster, everything), everything)


@pytest.mark.parametrize("mix", ["balanced", "lopsided"])
def test_a_sample_goes_where_it_went_among_all(mix):
    """A rival that starts in the middle, from what is left there, gives the same nodes."""
    cluster = MIXES[mix]()
    start, stop = cluster.jobs // 2, cluster.jobs // 2 + 50
    rival = SortedNodes(cluster.left_at(start).tolist())
    some = slice(start, stop)
    cluster.compare("it", placing.place_with("SortedList", rival, cluster, some), some)


def test_samples_are_of_the_whole():
    """Ten points, the first at the begin, none past the end."""
    some = placing.sample("ordered walk", 1_000_000)
    assert [each.start for each in some] == [100_000 * point for point in range(10)]
    assert {each.stop - each.start for each in some} == {1_000}
    assert placing.sample("numpy", 100)[-1] == slice(90, 100)


def worst_fit(left):
    """A rival that takes the emptiest node."""

    class WorstFit(SortedNodes):
        def _place(self, wanted):
            key = self._keys[-1]
            self._keys.remove(key)
            self._keys.add((*(a - b for a, b in zip(key, wanted, strict=False)), key[-1]))
            return key[-1]

    return WorstFit(left.tolist())


def test_another_answer_ends_the_run(monkeypatch, capsys):
    """Negative control: with the job and both nodes, status 1."""
    monkeypatch.setitem(placing.MAKERS, "SortedList", worst_fit)
    monkeypatch.setattr(gates, "sections", lambda _: iter([partial(placing.Placing, 40, 900)]))
    assert gates.main(["--quick", "--only", "placement"], gates=[]) == 1
    assert "job 0: SortedList has node" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["build with", "alike", "gang", "nearly", "build from"])
def test_lines_that_hold_jobs_see_a_difference(monkeypatch, line):
    """Negative control: what ours says it holds is compared with what it should."""
    fork = holding.NodeFork
    monkeypatch.setattr(fork, "bound", lambda *_: ())
    monkeypatch.setattr(fork, "place_many", lambda *_: [("node-000001", 1)])
    monkeypatch.setattr(clusters.Cluster, "node_of", np.zeros(0, dtype=np.int32))
    monkeypatch.setattr(clusters.Cluster, "placed", [None])
    tasks = [
        *holding.Holding(2).tasks(),
        *holding.Gangs(2, full=(2,), alike=2).tasks(),
    ]
    (task,) = [each for each in tasks if line in each.kind]
    with pytest.raises((Mismatch, ValueError)):
        task.measure(1)


def test_clusters_are_as_announced():
    """Most jobs of each mix find a node; a nearly full node has one core left."""
    for mix, most in (("balanced", 0.03), ("lopsided", 0.2), ("opposed", 0.6), ("alike", 0)):
        cluster = MIXES[mix]()
        assert (cluster.node_of == clusters.NO_NODE).mean() <= most, mix
        assert cluster.left_at(cluster.jobs).min() >= 0
    full = nearly_full(5)
    fork = full.db.fork(POOL)
    assert {fork.allocatable(node.id, 0).to_tuple()[1] for node in fork.nodes} == {1_000}
    assert sorted(full.node_of.tolist()) == [0, 1, 2, 3, 4]


def test_levels_are_all_in_use_or_not_at_all():
    """A cluster of eight levels has jobs at each; spare ones have none."""
    cluster = balanced(20, 200, levels=8, spare_levels=3)
    fork = cluster.db.fork(POOL)
    assert fork.table.levels == tuple(range(11))
    with fork.attempt() as attempt:
        attempt.place(cluster.arrivals)
        used = {fork.binding(job_id).priority for job_id in cluster.ids if fork.binding(job_id)}
    assert used == set(range(8))


@pytest.fixture
def _anew():
    """No library from before."""
    ordered_walk._library.cache_clear()
    yield
    ordered_walk._library.cache_clear()


@pytest.mark.usefixtures("_anew")
@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("CXX", "no-such-compiler", "CXX=no-such-compiler"),
        ("CXX", "false", "does not compile ordered_walk.cpp"),
        ("PATH", "", "install one or name one in CXX"),
    ],
)
def test_a_missing_compiler_is_one_line(monkeypatch, capsys, name, value, says):
    """It says what to do, and the gates end with status 2."""
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv(name, value)
    with pytest.raises(NoCompiler, match=says):
        OrderedWalk(np.ones((1, 1), dtype=np.int64))
    monkeypatch.setattr(gates, "sections", lambda _: iter([partial(placing.Placing, 4, 20)]))
    assert gates.main(["--quick", "--only", "placement"], gates=[]) == 2
    assert says in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("width", "shapes", "wanted"),
    [(5, 5, 0), (2, 3, 0), (2, 2, 1)],
    ids=["too wide", "other width", "unknown shape"],
)
def test_the_walk_checks_what_it_is_given(width, shapes, wanted):
    """Before anything native reads it."""
    with pytest.raises(ValueError, match=r"width|compiled"):
        OrderedWalk(np.ones((2, width), dtype=np.int64)).place(
            np.ones((1, shapes), dtype=np.int64), np.array([wanted], dtype=np.int32)
        )
