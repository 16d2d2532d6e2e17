"""All pods of a real GPU cluster as arrivals that never end: how many find a node, and why not.

    python benchmarks/alibaba.py           the data in ../shared/data/alibaba_gpu2023
    python benchmarks/alibaba.py FOLDER    the data elsewhere

Ours beside two best fits in plain Python over the same nodes, pods and order. GPUs are counted in
thousandths of a node's, as if a pod could have parts of several; a list of allowed models is a
condition on the node's label. 1 if an invariant breaks or ours places fewer than plain best fit,
2 where the data cannot be used.
"""

import argparse
import csv
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import thread_time
from typing import TypeAlias

from pyresched.config import PoolConfig, SchedulingConfig
from pyresched.model import (
    Constraint,
    Node,
    NodeId,
    Operator,
    PoolName,
    PriorityClass,
    Requirements,
    Resource,
    ResourceVector,
)
from pyresched.nodedb import Candidate, NodeDb, NodeFork

__all__ = [
    "CONFIG",
    "Pod",
    "Unusable",
    "dominant_fit",
    "ours",
    "plain_fit",
    "read_nodes",
    "read_pods",
]

POOL = "default"
MODEL = "gpu-model"
CONFIG = SchedulingConfig(
    # GPUs first: of the nodes that would do, one without any is best.
    resources=(Resource("gpu", "1m"), Resource("cpu", "1m"), Resource("memory", "1Mi")),
    priority_classes=(PriorityClass(name="default", priority=0),),
    default_priority_class="default",
    pools=(PoolConfig(name=PoolName(POOL)),),
)
FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "alibaba_gpu2023"

Amounts: TypeAlias = tuple[int, ...]


class Unusable(ValueError):
    """The data is not there or not what it should be."""


@dataclass(frozen=True, slots=True)
class Pod:
    """What a pod asks for: thousandths of GPUs and cores, MiB; on which models, if that matters."""

    name: str
    amounts: Amounts
    models: tuple[str, ...] = ()

    def requirements(self) -> Requirements:
        """The same for the node db."""
        allowed = (Constraint(MODEL, Operator.IN, self.models),) if self.models else ()
        return Requirements(ResourceVector(self.amounts), constraints=allowed)


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    except OSError as error:
        raise Unusable(f"{path}: {error.strerror}; name the folder of the data") from None


def read_nodes(folder: Path) -> list[Node]:
    """The nodes, with the model of their GPUs as a label."""
    path = folder / "openb_node_list_all_node.csv"
    try:
        return [
            Node(
                id=NodeId(row["sn"]),
                total=ResourceVector(
                    (1000 * int(row["gpu"]), int(row["cpu_milli"]), int(row["memory_mib"]))
                ),
                labels={MODEL: row["model"]} if row["model"] else {},
            )
            for row in _rows(path)
        ]
    except (KeyError, ValueError) as error:
        raise Unusable(
            f"{path}: {error!r} in a row; want sn, cpu_milli, memory_mib, gpu, model"
        ) from None


def read_pods(folder: Path) -> list[Pod]:
    """The pods in the order of their arrival."""
    path = folder / "openb_pod_list_default.csv"
    try:
        rows = sorted(_rows(path), key=lambda row: (int(row["creation_time"]), row["name"]))
        return [
            Pod(
                row["name"],
                (
                    int(row["num_gpu"]) * int(row["gpu_milli"]),
                    int(row["cpu_milli"]),
                    int(row["memory_mib"]),
                ),
                tuple(filter(None, row["gpu_spec"].split("|"))),
            )
            for row in rows
        ]
    except (KeyError, ValueError) as error:
        raise Unusable(f"{path}: {error!r} in a row; see the columns in its first line") from None


def ours(nodes: Sequence[Node], pods: Sequence[Pod]) -> tuple[NodeFork, Counter[str]]:
    """The fork on which the pods that find room are bound, and the reasons of the others."""
    fork = NodeDb(CONFIG, nodes).fork(POOL)
    refused: Counter[str] = Counter()
    with fork.attempt() as attempt:
        for pod in pods:
            asked = pod.requirements()
            found = fork.find(asked, 0)
            if isinstance(found, Candidate):
                attempt.bind_as(pod.name, asked, found.node_id, 0, preemptible=False)
            else:
                refused.update([", ".join(f"{r.code.value} {r.resource}" for r in found.reasons)])
        attempt.keep()
    return fork, refused


Fit: TypeAlias = Callable[[Amounts, Amounts, Amounts], tuple[float, ...]]


def plain_fit(left: Amounts, total: Amounts, asked: Amounts) -> tuple[float, ...]:
    """Least left of the first resource, then of the next."""
    del total, asked
    return left


def dominant_fit(left: Amounts, total: Amounts, asked: Amounts) -> tuple[float, ...]:
    """Least left of the resource of which the pod takes the largest part of the node."""
    shares = [want / has if has else 0.0 for want, has in zip(asked, total, strict=True)]
    most = shares.index(max(shares))
    return ((left[most] - asked[most]) / max(1, total[most]),)


def in_python(nodes: Sequence[Node], pods: Sequence[Pod], fit: Fit) -> dict[str, NodeId]:
    """The node of each pod that finds one: the least by *fit*, then by id, of all with room."""
    rows = sorted(
        ((n.id, n.total.to_tuple(), n.labels.get(MODEL, "")) for n in nodes), key=lambda r: r[0]
    )
    left = [total for _, total, _ in rows]
    placed: dict[str, NodeId] = {}
    for pod in pods:
        gpu, cpu, memory = asked = pod.amounts
        fitting = [
            (fit(has, rows[i][1], asked), i)
            for i, has in enumerate(left)
            if has[0] >= gpu
            and has[1] >= cpu
            and has[2] >= memory
            and (not pod.models or rows[i][2] in pod.models)
        ]
        if fitting:
            i = min(fitting)[1]
            left[i] = tuple(has - want for has, want in zip(left[i], asked, strict=True))
            placed[pod.name] = rows[i][0]
    return placed


def faults(nodes: Sequence[Node], pods: Sequence[Pod], fork: NodeFork) -> list[str]:
    """What is wrong with where ours put the pods: breaches, and nodes that gave what they lack."""
    by_name = {pod.name: pod for pod in pods}
    found = fork.check()
    for node in nodes:
        here = [by_name[name] for name in fork.bound(node.id)]
        taken = [sum(pod.amounts[r] for pod in here) for r in range(3)]
        if any(has < took for has, took in zip(node.total, taken, strict=True)):
            found.append(f"node {node.id} has {node.total.to_tuple()} and gave {taken}")
        wrong = [p.name for p in here if p.models and node.labels.get(MODEL) not in p.models]
        found.extend(f"pod {name} is on {node.id} of another model" for name in wrong)
    return found


def main(given: Sequence[str] | None = None) -> int:
    """Place, compare, print."""
    parser = argparse.ArgumentParser(prog="alibaba.py", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    folder = parser.parse_args(given).folder
    try:
        nodes, pods = read_nodes(folder), read_pods(folder)
    except Unusable as error:
        print(f"alibaba.py: {error}", file=sys.stderr)
        return 2
    began = thread_time()
    fork, refused = ours(nodes, pods)
    taken = thread_time() - began
    placed = len(fork.table.bound_jobs())
    print(f"{len(pods):,} pods on {len(nodes):,} nodes, none ever ends")
    print(f"ours               {placed:,} placed, {1e6 * taken / max(1, len(pods)):.1f} us a pod")
    for reason, count in sorted(refused.items(), key=lambda one: (-one[1], one[0])):
        print(f"  {count:,} refused: {reason}")
    plain = 0
    for name, fit in (("plain best fit", plain_fit), ("dominant best fit", dominant_fit)):
        began = thread_time()
        found = in_python(nodes, pods, fit)
        taken = thread_time() - began
        plain = plain or len(found)
        print(f"{name:18} {len(found):,} placed, {1e6 * taken / max(1, len(pods)):.0f} us a pod")
    wrong = faults(nodes, pods, fork)
    if placed < plain:
        wrong.append(f"{placed:,} placed; plain best fit places {plain:,}")
    print(*wrong[:10], sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
