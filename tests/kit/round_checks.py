"""What a round must keep, asked from the outside: of the rows before and of what it decided.

`breaches` says each breach of INV-R1 to INV-R6 and INV-R8; of docs/invariants.md the others are
about two rounds (INV-R7, INV-R9) and are asked by the tests that make them.
"""

from collections import Counter
from collections.abc import Iterator

from kit.decided import Decided, plain
from kit.round_rows import EPSILON, Candidate, Held, Rows, minus
from kit.round_rules import rules_of
from kit.rounds import POOL, World
from pyresched.model import Job, JobState, RoundResult

__all__ = ["breaches"]

# Who is refused for one of these had no room; the other reasons are limits, or faults of its own.
FOR_ROOM = {
    "insufficient_resources",
    "exceeds_every_node",
    "no_matching_node",
    "nodes_closed",
    "gang_does_not_fit",
}


def breaches(world: World, result: RoundResult | Decided) -> list[str]:
    """Each breach in *result*, a round over *world* as it is now, as a sentence."""
    decided = result if isinstance(result, Decided) else plain(result)
    before, after = rows(world), rows(world)
    answered = list(_answers(world, decided))
    if answered:
        return answered  # what is not there cannot be looked at any further
    for job_id in [*decided.outs, *(each[0] for each in decided.moved)]:
        after.unbind(world.jobs[job_id])
    for job_id, node_id, priority, _ in decided.scheduled:
        after.bind(world.jobs[job_id], Held(node_id, world.now, priority, POOL))
    for job_id, _, node_id, priority, *_ in decided.moved:
        after.bind(world.jobs[job_id], Held(node_id, world.now, priority, POOL))
    after.over = {n.id for n in after.nodes if min(after.free(n)) < 0}
    return [
        *_room(decided, before, after),
        *_gangs(world, decided),
        *_who_gave_way(world, decided, before),
        *_protection(world, decided, before),
        *_needless(world, decided, before, after),
        *_progress(decided, after),
    ]


def rows(world: World) -> Rows:
    """The rows of *world* as the plain model reads them."""
    rules = rules_of(world.config, POOL, world.queues)
    return Rows(
        world.jobs.values(),
        world.nodes.values(),
        world.queues,
        POOL,
        world.config,
        rules,
        world.now,
    )


def _answers(world: World, decided: Decided) -> Iterator[str]:
    queued = {j.id for j in world.jobs.values() if j.state is JobState.QUEUED and POOL in j.pools}
    answers = Counter([*(each[0] for each in decided.scheduled), *decided.refused])
    for job_id in sorted(queued | set(answers)):
        if answers[job_id] != 1 or job_id not in queued:
            yield f"INV-R3: {job_id} is answered {answers[job_id]} times"
    lost = Counter([*(each[0] for each in decided.preempted), *(m[0] for m in decided.moved)])
    for job_id, count in lost.items():
        row = world.jobs.get(job_id)
        if count > 1 or job_id in answers:
            yield f"INV-R3: {job_id} is preempted and more"
        if row is None or row.active_run is None:
            yield f"INV-R3: {job_id} loses a run and has none"
    nodes = [each[1] for each in decided.scheduled] + [each[2] for each in decided.moved]
    for node_id in sorted(set(nodes)):
        if node_id not in world.nodes or world.nodes[node_id].pool != POOL:
            yield f"INV-R1: {node_id} is no node of the pool"


def _room(decided: Decided, before: Rows, after: Rows) -> Iterator[str]:
    taken = [each[:2] for each in decided.scheduled]
    taken += [(each[0], each[2]) for each in decided.moved]
    for job_id, node_id in taken:
        row, job = before.node[node_id], before.by_id[job_id]
        if not row.takes_new_runs or not any(
            before.matches(row, job.requirements, more) for more in _variants(job, before)
        ):
            yield f"INV-R1: {job_id} on {node_id}, which it may not use"
        if min(after.free(row)) < 0:
            yield f"INV-R1: {node_id} is above its total"


def _variants(job: Job, rows: Rows) -> list[tuple[object, ...]]:
    """What a job tolerates in addition, at home and away."""
    return [(), *(more for _, more in rows.rules.away_of(job))]


def _gangs(world: World, decided: Decided) -> Iterator[str]:
    for what, ids in (("placed", decided.ins), ("preempted", decided.outs)):
        for job_id in sorted(ids):
            mates = {m.id for m in world.mates(job_id) if not m.state.terminal}
            if not mates <= ids:
                yield f"INV-R2: {job_id} was {what} without {sorted(mates - ids)}"
    for job_id, *_ in decided.moved:
        if any(mate.active_run is None for mate in world.mates(job_id) if not mate.state.terminal):
            yield f"INV-R2: {job_id} moved, and not all of its gang had nodes"


def _who_gave_way(world: World, decided: Decided, before: Rows) -> Iterator[str]:
    gone = [*decided.preempted, *((m[0], None, m[1], m[4], m[5]) for m in decided.moved)]
    for job_id, run_id, node_id, for_job, cause in gone:
        job = world.jobs[job_id]
        run = job.active_run
        assert run is not None
        if run.node_id != node_id or (run_id is not None and run.id != run_id):
            yield f"INV-R4: {job_id} has no such run"
        class_ = before.classes.get(job.requirements.priority_class)
        if class_ is None or not class_.preemptible:
            yield f"INV-R4: {job_id} is not preemptible"
        if (cause == "guest") != (run.pool != POOL):
            yield f"INV-R4: {job_id} ran in pool {run.pool!r} and lost its node by {cause}"
        if for_job not in world.jobs or for_job == job_id:
            yield f"INV-R4: {job_id} gave way to {for_job}"
            continue
        urgency = before.priority(world.jobs[for_job])
        if cause == "fair_share" and before.at[job_id].priority > urgency:
            yield f"INV-R4: {job_id} is more urgent than {for_job}"
        # Sent away from home first, it was less urgent when it lost that place too.
        if (
            cause == "urgency"
            and before.at[job_id].priority >= urgency
            and not (class_ and class_.away)
        ):
            yield f"INV-R4: {job_id} is as urgent as {for_job}"


def _protection(world: World, decided: Decided, before: Rows) -> Iterator[str]:
    """A queue loses nothing to fair share once it is at its share.

    Asked of rounds in which only the first pass took anything: in later ones a queue may have
    got so much that it was above its share, and lose that again and more.
    """
    if decided.passes > 2:
        return
    lost: dict[str, list[Job]] = {}
    units: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for job_id, _, _, _, cause in decided.preempted:
        job = world.jobs[job_id]
        key = (job.queue, job.id if job.gang is None else f"gang {job.gang.id}")
        units.setdefault(key, []).append((job_id, cause))
    for (queue, _), members in units.items():
        gone = lost.setdefault(queue, [])
        share = before.cost(minus(before.holds(queue), before.amounts(gone)))
        by_share = any(cause == "fair_share" for _, cause in members)
        if by_share and share <= before.protected.get(queue, 1.0) + EPSILON:
            yield f"INV-R5: {queue} lost {[id for id, _ in members]} at a share of {share}"
        if before.at[members[0][0]].pool == POOL:
            gone.extend(world.jobs[id] for id, _ in members)


def _needless(world: World, decided: Decided, before: Rows, after: Rows) -> Iterator[str]:
    lost = [world.jobs[each[0]] for each in (*decided.preempted, *decided.moved)]
    moved = {each[0] for each in decided.moved}
    for jobs in after.groups(lost):
        mates = [job for mate in jobs[:1] for job in world.mates(mate.id) if job.id in before.at]
        if any(
            job.id in after.at and after.at[job.id].priority > before.at[job.id].priority
            for job in mates
        ):
            continue  # it is less easy to send off where it is now
        was = [(job, after.unbind(job)) for job in mates if job.id in after.at]
        homes: dict[str, list[Job]] = {}
        for job in mates:
            homes.setdefault(before.at[job.id].node_id, []).append(job)
        if all(
            node_id not in after.node
            or after.within(after.sum(there), after.free(after.node[node_id]))
            for node_id, there in homes.items()
        ):
            what = "moved" if jobs[0].id in moved else "preempted"
            yield f"INV-R6: {[job.id for job in jobs]} could have stayed and was {what}"
        for job, held in was:
            after.bind(job, held)


def _progress(decided: Decided, after: Rows) -> Iterator[str]:
    """INV-R8: what waits for room, or lost it in the round, fits nowhere."""
    waiting = [after.by_id[j] for j, why in decided.refused.items() if why in FOR_ROOM]
    waiting += [after.by_id[j] for j in decided.outs if after.by_id[j].queue in after.part]
    for jobs in after.groups(waiting):
        if after.home.get(jobs[0].id) is not None and after.home[jobs[0].id].pool != POOL:
            continue  # a guest waits in its own pool
        class_ = after.classes[jobs[0].requirements.priority_class]
        head = Candidate(after.largest_first(jobs), class_, (0, 0, ""))
        if jobs[0].gang is not None and len(jobs) < jobs[0].gang.cardinality - sum(
            job.state.terminal for job in after.jobs if job.gang == jobs[0].gang
        ):
            continue
        for nodes in after.node_sets(head):
            if _fits(head, nodes, after):
                yield f"INV-R8: {[job.id for job in jobs]} waits for room, and there is some"
                break


def _fits(head: Candidate, nodes: list[object], after: Rows) -> bool:
    """Whether the members, the largest first, all find free room, the fullest node first."""
    done = []
    for job in head.jobs:
        found = None
        for more in _variants(job, after):
            rooms = [
                (after.free(n)[: after.width], n.id, n)
                for n in nodes
                if after.takes(n)
                and after.matches(n, job.requirements, more)
                and after.within(after.wants(job), after.free(n))
            ]
            if rooms:
                found = min(rooms, key=lambda each: each[:2])[2]
                break
        if found is None:
            break
        after.bind(job, Held(found.id, 0, 0, POOL))
        done.append(job)
    for job in done:
        after.unbind(job)
    return len(done) == len(head.jobs)
