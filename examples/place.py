"""Where would it go, and why not there: the nodes asked by themselves, without a round.

A `NodeDb` keeps the nodes, a fork of it is yours to try things on: what is placed on the fork
reaches nobody else.
"""

from pyresched import (
    Constraint,
    Job,
    Node,
    NodeDb,
    Operator,
    Preference,
    PriorityClass,
    Requirements,
    Resource,
    Rounding,
    SchedulingConfig,
    Spread,
    Taint,
    Toleration,
)

config = SchedulingConfig(
    resources=(Resource("cpu", unit="1m"), Resource("gpu")),
    priority_classes=(
        PriorityClass(name="default", priority=1000),
        PriorityClass(name="spare", priority=0, preemptible=True),
    ),
)
spec, normal = config.spec, config.priority_class("default").priority


def node(n: int) -> Node:
    """Every tenth has GPUs, and a taint that keeps others away; the model is a label."""
    labels = {"zone": "abc"[n % 3], "disk": "hdd" if n % 4 else "ssd"}
    model = {"gpu.model": "H100" if n % 20 else "A100"} if n % 10 == 0 else {}
    return Node(
        id=f"n{n:03}",
        total=spec.vector({"cpu": 16, "gpu": 4 if model else 0}, rounding=Rounding.DOWN),
        labels=labels | model,
        taints=(Taint("gpu"),) if model else (),
        max_jobs=8,
    )


def gpus(count: int, model: str) -> Requirements:
    """A request for *count* GPUs of a *model*, in another zone each time."""
    return Requirements(
        spec.vector({"cpu": 4, "gpu": count}, rounding=Rounding.UP),
        tolerations=(Toleration("gpu"),),
        constraints=(Constraint("gpu.model", Operator.EQUAL, (model,)),),
        spread=(Spread("zone"),),
        scope="train",  # the jobs that spread counts
    )


def jobs(prefix: str, count: int, asks: Requirements) -> list[Job]:
    """*count* jobs alike."""
    return [
        Job(id=f"{prefix}{n}", queue="ada", requirements=asks, submitted_at=n) for n in range(count)
    ]


fork = NodeDb(config, [node(n) for n in range(100)]).fork("default")
like_ssd = Preference(10, (Constraint("disk", Operator.EQUAL, ("ssd",)),))
two_cores = spec.vector({"cpu": 2}, rounding=Rounding.UP)
print(f"{'asked':24}answer")

# One node, for one request. Nothing is bound by asking.
for name, asks in {
    "2 cores": Requirements(two_cores),
    "2 cores, rather on ssd": Requirements(two_cores, preferences=(like_ssd,)),
    "2 cores in zone c": Requirements(two_cores, selector={"zone": "c"}),
    "2 GPUs, H100": gpus(2, "H100"),
    "8 GPUs, H100": gpus(8, "H100"),
}.items():
    found = fork.find(asks, normal)
    print(f"{name:24}{found.node_id if found else found.reason.sentence()}")

# A gang, all or none: what an attempt did is taken back, unless it is kept.
for size in (6, 12):
    with fork.attempt() as attempt:
        placed = attempt.place(jobs(f"gang{size}-", size, gpus(2, "H100")))
        if all(placed):
            attempt.keep()
            print(f"{f'gang of {size}':24}{', '.join(str(each) for each in placed)}")
        else:
            print(f"{f'gang of {size}':24}none; {size - placed.count(None)} alone would fit")
            for excluded in fork.not_found(gpus(2, "H100"), normal).excluded:
                print(f"{'':24}  {excluded.sentence()}")

# Whom to preempt: fill the pool with jobs that give way, then ask for more than is left.
with fork.attempt() as attempt:
    spare = jobs("spare", 1000, Requirements(two_cores, "spare"))
    running = [job.id for job, at in zip(spare, attempt.place(spare), strict=True) if at]
    large = Requirements(spec.vector({"cpu": 6}, rounding=Rounding.UP))
    victims = fork.victims(large, normal, running)  # the dearest first: the last goes first
    said = f"{victims.node_id}, without {', '.join(victims.job_ids)}" if victims else "nobody helps"
    print(f"{'6 cores of a full pool':24}{said}")
print(f"{'afterwards':24}{fork}")
