# cython: binding=False, boundscheck=False, wraparound=False
"""From what the job db says to what node tables hold.

Owns the rule which job holds what: one whose newest run has not ended holds, from its lease on,
its request on the node of that run, at the priority of the run. Relies on `NodeTable`.
"""

from libc.stdint cimport int64_t

from pyresched._core.nodeindex cimport NodeTable
from pyresched._core.records cimport Kind, RunPart, active_run
from pyresched._core.values cimport LEASED, RUNNING
from pyresched._core.views cimport Job


cdef const RunPart *holding(Job job):
    """The run by which *job* holds a node, or NULL."""
    if LEASED <= job.record.state <= RUNNING:
        return active_run(job.record)
    return NULL


def follow(list changed not None, dict home not None, dict tables not None,
           dict homeless not None, is_preemptible not None, list joint not None):
    """Make *tables* hold what the jobs of *changed* hold: (before, after) or None of each.

    *home* maps a node id to its pool and *tables* a pool to its table; *is_preemptible* takes a
    job and raises for one that cannot be held: then nothing has changed. What a run holds of a
    node that is in no table goes into
    *homeless*, by job id, as (node id, requirements, priority, preemptible, pool). The tables of
    *joint* follow too: each has nodes of several pools.
    """
    cdef list jobs = []
    cdef list kinds = []
    cdef dict checked = {}
    cdef Job job
    cdef Kind kind
    for before, after in changed:
        job = <Job?> (after if after is not None else before)
        preemptible = None
        if after is not None and holding(job) != NULL:
            kind = job.kind()
            preemptible = checked.get(<size_t> <void *> kind)
            if preemptible is None:
                preemptible = is_preemptible(job)
                checked[<size_t> <void *> kind] = preemptible
        jobs.append(job)
        kinds.append(preemptible)
    for i in range(len(jobs)):
        put(<Job> jobs[i], kinds[i], home, tables, homeless, joint)


cdef int put(Job job, object preemptible, dict home, dict tables, dict homeless,
             list joint) except -1:
    cdef const RunPart *run = NULL
    cdef NodeTable table = None
    cdef NodeTable other
    cdef int64_t priority = 0
    cdef str job_id = job.name()
    node_id = None
    if homeless:
        homeless.pop(job_id, None)
    if preemptible is not None:
        run = holding(job)
        priority = run.priority
        node_id = <object> run.node_id
        table = tables.get(home.get(node_id))
        if table is None:
            homeless[job_id] = (
                node_id, job.kind().requirements, priority, preemptible, <object> run.pool)
    for other in tables.values():
        if other is not table:
            other.let_go(job_id)
    if table is not None:
        table.hold_node(job_id, job.kind().requirements, table.node_by_id[node_id], priority,
                        preemptible, <str> <object> run.pool)
    for other in joint:
        found = other.node_by_id.get(node_id)
        if found is None:
            other.let_go(job_id)
        else:
            other.hold_node(job_id, job.kind().requirements, found, priority, preemptible,
                            <str> <object> run.pool)
    return 0
