"""One call from files to figures: what `pyresched simulate` and `pyresched.simulate` both do.

Relies on the readers for files and on `Engine` for the rest; every figure is made here from
the records. Raises InputError for anything a user wrote that cannot be used.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

from pyresched.config import SchedulingConfig, load_config, load_nodes, nodes_from_shape
from pyresched.errors import ConfigError, InputError
from pyresched.model import NANOS, Duration, Node, Queue, QueueName
from pyresched.report.records import (
    JobCounts,
    JobEnd,
    LineCounts,
    NodeRecord,
    Outage,
    SimulationResult,
    Summary,
)
from pyresched.reschedule import Severity, problems
from pyresched.scheduling import Arguments
from pyresched.simulator import metrics
from pyresched.simulator.checks import Checks, breaches
from pyresched.simulator.draws import checked_seed
from pyresched.simulator.engine import Engine, Moment
from pyresched.simulator.formats.failures import FailureLog, outages, read_failures
from pyresched.simulator.formats.swf import WorkloadLog, read_swf
from pyresched.simulator.workload import CPU, Workload, cores_of

__all__ = ["CYCLE", "simulate"]

CYCLE = 10 * NANOS
"""The least time between two cycles, unless another is asked for: as Armada's simulator has it."""


def simulate(
    log: str | Path | WorkloadLog,
    *,
    nodes: str | Sequence[Node] | None = None,
    node_file: str | Path | None = None,
    failures: str | Path | FailureLog | None = None,
    config: str | Path | SchedulingConfig | None = None,
    until: Duration | None = None,
    seed: int = 0,
    cycle: Duration = CYCLE,
    preemptible_queues: frozenset[int] | None = None,
    checks: Checks = Checks.NEVER,
    on_cycle: Callable[[Moment], None] | None = None,
    on_round: Callable[[Arguments], None] | None = None,
) -> SimulationResult:
    """Run the workload *log* through the scheduler and say what became of every job.

    *nodes* is a shape such as `100x12` or a sequence of nodes, *node_file* a file of nodes; with
    neither, the log's header says how many nodes and processors there are. *failures* is a CSV
    in the columns of Los Alamos, laid over the nodes from the first submit on. *until* (ns)
    ends the simulation that long after the first submit; *cycle* (ns) is the least time between
    two scheduling cycles. *preemptible_queues* are numbers of queues of the log whose jobs give
    way; None takes those that its header names. *on_cycle* is called after each cycle, *on_round*
    before each round with what `run_round` takes.

    The same arguments give an equal result. Raises InputError for what cannot be used, and
    AssertionError when *checks* find a breach.
    """
    checked_seed(seed)
    if until is not None and until < 0:
        raise InputError(f"until {until} ns: write a duration of 0 or more after the first submit")
    if cycle < 0:
        raise InputError(f"cycle {cycle} ns: write a duration of 0 or more, such as 10s")
    settings = config if isinstance(config, SchedulingConfig) else _settings(config)
    cluster = _cluster_given(nodes, node_file, settings)
    records = log if isinstance(log, WorkloadLog) else read_swf(log)
    if cluster is None:
        cluster = _cluster_of_header(records, settings)
    losses = _losses(failures)
    workload = Workload(
        records, nodes=cluster, config=settings, seed=seed, preemptible=preemptible_queues
    )
    away: Sequence[Outage] = ()
    if losses is not None:
        away = outages(losses.failures, [node.id for node in cluster], start=records.first_submit)
    engine = Engine(
        workload,
        nodes=cluster,
        queues=_queues(workload, settings),
        outages=away,
        config=settings,
        cycle=cycle,
        until=None if until is None else records.first_submit + until,
        on_cycle=on_cycle,
        checks=breaches if checks is Checks.EVERY_STEP else None,
        on_round=on_round,
    )
    engine.run()
    return _result(engine, records, losses, cluster=cluster, config=settings, seed=seed)


def _settings(path: str | Path | None) -> SchedulingConfig:
    if path is None:
        return SchedulingConfig()
    config = load_config(path)
    for job_type in config.reschedule:
        found = problems(
            config.policy_for(job_type),
            min_delay=config.reschedule_min_delay,
            dialect=config.reschedule_dialect,
        )
        for problem in found:
            if problem.severity is Severity.ERROR:
                raise ConfigError(f"{path}: reschedule.{job_type}: {problem.sentence}")
    return config


def _cluster_given(
    nodes: str | Sequence[Node] | None, node_file: str | Path | None, config: SchedulingConfig
) -> Sequence[Node] | None:
    """The nodes that the caller gave in one of two ways, or None."""
    if nodes is not None and node_file is not None:
        raise InputError("nodes are given twice; give a shape such as 100x12 or a file, not both")
    if node_file is not None:
        return load_nodes(node_file, config)
    if isinstance(nodes, str):
        return nodes_from_shape(nodes, config)
    if nodes is not None and not nodes:
        raise InputError("no nodes; give at least one")
    return nodes


def _cluster_of_header(log: WorkloadLog, config: SchedulingConfig) -> Sequence[Node]:
    """As many nodes as the header says, with an equal share of its processors each."""
    count, processors = log.header_number("MaxNodes"), log.header_number("MaxProcs")
    if count is None and processors is None:
        raise InputError(
            f"{log.name}: its header does not say MaxNodes or MaxProcs; give nodes such as 100x12"
        )
    count = count or processors or 1
    try:
        return nodes_from_shape(f"{count}x{max(1, (processors or count) // count)}", config)
    except InputError as refused:
        raise InputError(f"{log.name}: its header (MaxNodes, MaxProcs): {refused}") from refused


def _losses(failures: str | Path | FailureLog | None) -> FailureLog | None:
    if failures is None or isinstance(failures, FailureLog):
        return failures
    return read_failures(failures)


def _queues(workload: Workload, config: SchedulingConfig) -> list[Queue]:
    """The queues of the configuration, and one of weight 1 for each other owner in the log."""
    known = {queue.name: queue for queue in config.queues}
    for name in sorted({job.queue for job in workload.jobs}):
        known.setdefault(QueueName(name), Queue(name=QueueName(name)))
    return list(known.values())


def _result(
    engine: Engine,
    log: WorkloadLog,
    losses: FailureLog | None,
    *,
    cluster: Sequence[Node],
    config: SchedulingConfig,
    seed: int,
) -> SimulationResult:
    books = engine.books
    jobs, runs = books.job_records(engine.waiting_reasons()), books.run_records()
    nodes = tuple(NodeRecord(id=node.id, cores=cores_of(node.total, config)) for node in cluster)
    start, end = engine.start, engine.end
    slowdowns = [s for job in jobs if (s := metrics.bounded_slowdown(job)) is not None]
    middle = metrics.quantile(slowdowns, Fraction(1, 2))
    ends = {each: sum(job.end is each for job in jobs) for each in JobEnd}
    summary = Summary(
        log=Path(log.name).name,
        seed=seed,
        jobs=JobCounts(
            total=len(jobs),
            succeeded=ends[JobEnd.SUCCEEDED],
            failed=ends[JobEnd.FAILED],
            cancelled=ends[JobEnd.CANCELLED],
            refused=ends[JobEnd.REFUSED],
            unfinished=ends[JobEnd.UNFINISHED],
        ),
        attempts=sum(job.runs for job in jobs),
        runs=len(runs),
        reschedules=books.reschedules,
        restarts=sum(job.restarts for job in jobs),
        preemptions=books.preemptions,
        nodes=len(nodes),
        cores=sum(node.cores for node in nodes),
        nodes_lost=len(books.outages),
        runs_lost=books.runs_lost,
        runs_failed=sum(run.outcome == "failed" for run in runs),
        makespan_s=metrics.rounded(Fraction(end - start, NANOS)),
        utilisation=metrics.utilisation(runs, nodes, books.outages, start=start, end=end),
        wait_s=metrics.wait_seconds(jobs),
        slowdown=metrics.rounded_mean(slowdowns),
        slowdown_median=None if middle is None else metrics.rounded(middle),
        jain=metrics.jain_index(metrics.service_by_queue(jobs).values()),
        cycles=engine.cycles,
        lines=LineCounts(read=log.lines_read, skipped=len(log.skipped)),
        failure_lines=None if losses is None else losses.lines,
    )
    return SimulationResult(
        log=log.name,
        started_at=start,
        ended_at=end,
        resources=(CPU,),
        nodes=nodes,
        jobs=jobs,
        runs=runs,
        outages=tuple(books.outages),
        samples=engine.samples(),
        skipped_lines=(*log.skipped, *(() if losses is None else losses.skipped)),
        summary=summary,
    )
