"""From a log to jobs: pieces, owners, classes, and how each run will end."""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyresched.config import SchedulingConfig, nodes_from, nodes_from_shape
from pyresched.errors import InputError
from pyresched.model import PriorityClass, Resource, ResourceVector
from pyresched.simulator.formats.swf import WorkloadLog, parse_swf
from pyresched.simulator.workload import Workload, piece_sizes

CONFIG = SchedulingConfig()


def log(*jobs: dict[int, object], header: str = "; Queue: 2 preemptible") -> WorkloadLog:
    """A log of *jobs*, each a few fields by number on top of a plain job."""
    lines = [header]
    for number, fields in enumerate(jobs, start=1):
        plain = {1: number, 2: 0, 4: 60, 8: 1, 11: 1, 12: 7, 15: 1} | fields
        lines.append(" ".join(str(plain.get(field, -1)) for field in range(1, 19)))
    return parse_swf(lines, name="log")


def workload(*jobs: dict[int, object], shape: str = "4x12", **options: object) -> Workload:
    """The workload of *jobs* on nodes of *shape*."""
    config = options.pop("config", CONFIG)
    assert isinstance(config, SchedulingConfig)
    settings: dict[str, object] = {
        "nodes": nodes_from_shape(shape, config),
        "config": config,
        "seed": 0,
    }
    return Workload(log(*jobs), **(settings | options))  # type: ignore[arg-type]


@given(
    st.integers(1, 400),
    st.dictionaries(st.integers(1, 40), st.integers(1, 9), min_size=1, max_size=4),
)
def test_pieces_add_up_and_fit_nodes(cores: int, nodes: dict[int, int]) -> None:
    """All pieces but the last are alike, the last is no larger, none is above every node."""
    pieces = piece_sizes(cores, nodes)
    total = sum(size * count for size, count in nodes.items())
    if cores <= max(nodes):
        assert pieces == (cores,)
        return
    assert len(set(pieces[:-1])) <= 1
    assert 0 < pieces[-1] <= pieces[0] <= max(nodes)
    if placeable(pieces, nodes):
        assert sum(pieces) == cores
    else:
        # No size would have done, and the pieces are few.
        assert not any(placeable(split(cores, size), nodes) for size in nodes)
        assert sum(pieces) <= cores
        assert sum(pieces[:-1]) <= total


def split(cores: int, size: int) -> list[int]:
    """Pieces of *size*, and the rest."""
    return [min(size, cores - start) for start in range(0, cores, size)]


def placeable(pieces: Sequence[int], nodes: dict[int, int]) -> bool:
    """Whether *pieces*, largest first, fit the free cores of *nodes*, each where it leaves least."""
    free = [size for size, count in nodes.items() for _ in range(count)]
    for piece in pieces:
        # Largest pieces are alike, so any node that holds one does, but for what is left of it.
        best = min(
            (left for left in free if left >= piece), key=lambda left: left % piece, default=0
        )
        if not best:
            return False
        free.remove(best)
        free.append(best - piece)
    return True


def test_a_wide_job_takes_the_largest_size_of_which_there_is_enough() -> None:
    """Two large nodes cannot hold three large pieces; twenty small ones hold their like."""
    nodes = {64: 2, 12: 20}
    assert piece_sizes(128, nodes) == (64, 64)
    assert piece_sizes(130, nodes) == (64, 64, 2)
    assert piece_sizes(150, nodes) == (12,) * 12 + (6,)
    assert piece_sizes(91, {9: 10, 2: 1}) == (9,) * 10 + (1,)


def test_an_absurd_width_stays_small() -> None:
    """A billion processors are one piece more than the nodes hold."""
    assert piece_sizes(10**9, {12: 100}) == (12,) * 101


def test_a_job_that_fits_a_node_is_one_job_and_a_wider_one_a_gang() -> None:
    """Pieces are whole nodes, the last one the rest; all submitted at one time."""
    work = workload({8: 12}, {8: 30})
    (single,) = work.rows(work.jobs[0])
    assert single.gang is None
    assert single.requirements.resources == ResourceVector([12_000, 0])
    members = work.rows(work.jobs[1])
    assert [member.requirements.resources[0] for member in members] == [12_000, 12_000, 6_000]
    assert {member.gang.cardinality for member in members if member.gang} == {3}
    assert [member.id for member in members] == ["2.0", "2.1", "2.2"]
    assert members[0].requirements is members[1].requirements


def test_ids_stand_in_the_order_of_numbers() -> None:
    """As text too: two jobs of one instant start in the order of their numbers."""
    work = workload({1: 2}, {1: 10})
    assert sorted(job.id for job in work.jobs) == ["02", "10"]


def test_users_are_queues() -> None:
    """A job without a user has a queue as well."""
    work = workload({12: 7}, {12: -1}, {12: 8})
    assert [job.queue for job in work.jobs] == ["user-7", "user-unknown", "user-8"]


def test_the_header_or_the_caller_says_which_queue_gives_way() -> None:
    """The caller wins, and may say that none does."""
    jobs = ({15: 1}, {15: 2}, {15: 3})

    def classes(**options: object) -> list[str]:
        return [job.priority_class for job in workload(*jobs, **options).jobs]

    assert classes() == ["default", "best-effort", "default"]
    assert classes(preemptible=frozenset({3})) == ["default", "default", "best-effort"]
    assert classes(preemptible=frozenset()) == ["default"] * 3


def test_without_a_best_effort_class_the_least_urgent_preemptible_one_stands_in() -> None:
    """And without any, all jobs are alike."""
    plain = PriorityClass(name="default", priority=9)
    spare = PriorityClass(name="spare", priority=2, preemptible=True)
    idle = PriorityClass(name="idle", priority=1, preemptible=True)
    for classes, expected in (((plain, spare, idle), "idle"), ((plain,), "default")):
        config = SchedulingConfig(priority_classes=classes)
        assert workload({15: 2}, config=config).jobs[0].priority_class == expected


def test_memory_counts_only_where_nodes_say_how_much_they_have() -> None:
    """Logs give it for each processor in kB."""
    fields = {8: 2, 10: 1024}
    assert workload(fields).rows(workload(fields).jobs[0])[0].requirements.resources[1] == 0
    nodes = nodes_from(
        {"nodes": [{"prefix": "n", "count": 2, "resources": {"cpu": 4, "memory": "8Gi"}}]}, CONFIG
    )
    work = workload(fields, nodes=nodes)
    assert work.rows(work.jobs[0])[0].requirements.resources == ResourceVector([2000, 2])


def test_nodes_that_refuse_jobs_of_a_log_say_nothing_about_pieces() -> None:
    """A wide node with a taint holds none of them, so their pieces fit the narrow ones."""
    entries = [
        {"prefix": "n", "count": 4, "resources": {"cpu": 4}},
        {"id": "gpu", "resources": {"cpu": 32}, "taints": [{"key": "gpu"}]},
    ]
    work = workload({8: 8}, nodes=nodes_from({"nodes": entries}, CONFIG))
    assert work.jobs[0].pieces == (4, 4)


def test_a_configuration_without_cpu_is_refused() -> None:
    """The line says what to add."""
    config = SchedulingConfig(resources=(Resource("memory"),))
    nodes = nodes_from({"nodes": [{"id": "n", "resources": {"memory": 4}}]}, config)
    with pytest.raises(InputError, match="no resource 'cpu'"):
        workload({}, config=config, nodes=nodes)


def test_a_run_ends_as_the_log_says_and_later_ones_by_the_share_of_the_queue() -> None:
    """A job that succeeded never fails; one that failed fails first, then as its queue does."""
    jobs = [{11: 0, 15: 1} for _ in range(1000)] + [{11: 1, 15: 1} for _ in range(3000)]
    work = workload(*jobs, {11: 5, 15: 1}, {11: 1, 15: 2}, {11: 0, 15: 2})
    assert work.failure_share == {1: 0.25, 2: 0.5}
    failing = [job for job in work.jobs[:1000] if work.fails(job, failures=1)]
    assert all(work.fails(job, failures=0) for job in work.jobs[:1000])
    assert not any(work.fails(job, failures=n) for job in work.jobs[1000:4000] for n in (0, 1))
    assert 200 < len(failing) < 300
    again = [job for job in work.jobs[:1000] if work.fails(job, failures=2)]
    assert again != failing


def test_no_job_is_sure_to_fail_for_ever() -> None:
    """Where all jobs of a queue failed, one in n + 1 tries succeeds."""
    work = workload(*({11: 0} for _ in range(9)))
    assert work.failure_share == {1: 0.9}
    assert any(not work.fails(work.jobs[0], failures=n) for n in range(1, 100))


def test_another_seed_draws_other_failures_and_seed_0_is_a_seed() -> None:
    """The same seed draws the same."""
    jobs = [{11: 0}] * 100 + [{11: 1}] * 100
    draws = [
        [work.fails(job, failures=1) for job in work.jobs]
        for work in (workload(*jobs, seed=0), workload(*jobs, seed=0), workload(*jobs, seed=1))
    ]
    assert draws[0] == draws[1] != draws[2]


def test_any_piece_of_a_gang_may_be_the_one_that_fails() -> None:
    """Drawn for each failure anew, always one of them."""
    work = workload({8: 48, 11: 0})
    pieces = Counter(work.failing_piece(work.jobs[0], failures=n) for n in range(400))
    assert sorted(pieces) == [0, 1, 2, 3]
    assert min(pieces.values()) > 60
