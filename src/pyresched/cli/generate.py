"""`pyresched generate`: a log, and node failures to lay over it, from published models."""

from pathlib import Path
from typing import Annotated, Final

import typer

from pyresched.cli.options import duration
from pyresched.config import SchedulingConfig, nodes_from_shape
from pyresched.errors import InputError
from pyresched.model import NANOS
from pyresched.simulator.generate import (
    FailurePlan,
    GeneratedFailures,
    GeneratedLog,
    WorkloadPlan,
)
from pyresched.simulator.placing import Existing, new_file
from pyresched.simulator.workload import cores_of

__all__ = ["generate"]

_NODES: Final = "32x4"
_NODE_MTBF: Final = "720h"


def generate(
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT.swf", help="Log to write; packed if it ends in .gz.", show_default=False
        ),
    ],
    jobs: Annotated[int, typer.Option(help="Jobs of the log.")] = 1000,
    seed: Annotated[int, typer.Option(help="Decides the log; 0 is a seed.")] = 0,
    nodes: Annotated[
        str | None, typer.Option(help="Nodes and cores of each. [default: 32x4]")
    ] = None,
    procs: Annotated[
        int | None, typer.Option(help="Processors, instead of --nodes: so many nodes of one core.")
    ] = None,
    users: Annotated[
        int, typer.Option(help="Users, the k-th with 1/k of the first one's jobs.")
    ] = 12,
    failure_share: Annotated[float, typer.Option(help="Share of jobs that fail.")] = 0.1,
    preemptible_share: Annotated[
        float, typer.Option(help="Share of jobs in queue 2, whose jobs give way.")
    ] = 0.15,
    load: Annotated[
        float | None,
        typer.Option(help="What jobs ask for over what there is. [default: as the model has it]"),
    ] = None,
    failures_out: Annotated[
        Path | None, typer.Option(metavar="F.csv", help="Node failures to write as well.")
    ] = None,
    node_mtbf: Annotated[
        str | None, typer.Option(help="Mean time between two failures of a node. [default: 720h]")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files.")] = False,
) -> None:
    """Make a workload log from the model of Lublin and Feitelson (2003), and node failures.

    Users follow Zipf's law; failures of nodes those that Schroeder and Gibson (2006) found in
    the Los Alamos records. The same options give the same bytes.

    **Examples**

    `pyresched generate made.swf --jobs 600 --nodes 32x4 --load 0.9`

    `pyresched generate made.swf.gz --failures-out failures.csv --node-mtbf 240h`
    """
    if node_mtbf is not None and failures_out is None:
        raise InputError("--node-mtbf: no failures are written; add --failures-out F.csv")
    count, cores = _machine(nodes, procs)
    mean_s = duration(node_mtbf or _NODE_MTBF, option="--node-mtbf") / NANOS
    made = GeneratedLog.of(
        WorkloadPlan(
            jobs=jobs,
            nodes=count,
            cores=cores,
            users=users,
            failure_share=failure_share,
            preemptible_share=preemptible_share,
            load=load,
            seed=seed,
        )
    )
    until_s = max(job.submit_s + job.run_s for job in made.jobs)
    losses = GeneratedFailures.of(
        FailurePlan(nodes=count, cores=cores, until_s=until_s, mean_s=mean_s, seed=seed)
    )
    existing = Existing.REPLACE if force else Existing.REFUSE
    if failures_out is not None:
        if failures_out == out:
            raise InputError(f"{out}: is named twice; write the failures to another file")
        new_file(failures_out, losses.lines(), existing)
    new_file(out, made.lines(), existing)
    print(f"{out}: {len(made.jobs):,} jobs for {count:,} nodes of {cores} cores, seed {seed}")
    if failures_out is not None:
        print(f"{failures_out}: {len(losses.failures):,} failures")


def _machine(nodes: str | None, procs: int | None) -> tuple[int, int]:
    """How many nodes, and the cores of each."""
    if procs is not None:
        if nodes is not None:
            raise InputError(f"--procs {procs} and --nodes {nodes} are two machines; write one")
        return procs, 1
    config = SchedulingConfig()
    shape = nodes_from_shape(_NODES if nodes is None else nodes, config)
    return len(shape), cores_of(shape[0].total, config)
