# cython: language_level=3
# The jobs of one round as flat columns: entries, lanes, gangs, shapes and reasons.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from pyresched._core.drf cimport DominantResourceFairness
from pyresched._core.nodeindex cimport NodeTable
from pyresched._core.records cimport Record
from pyresched._core.resources cimport ResourceVector
from pyresched._core.values cimport Requirements

# Why a job got no node; `CODES` names these, in this order.
cdef enum Code:
    INSUFFICIENT_RESOURCES
    EXCEEDS_EVERY_NODE
    NO_MATCHING_NODE
    NODES_CLOSED
    GANG_DOES_NOT_FIT
    GANG_INCOMPLETE
    GANG_MALFORMED
    UNKNOWN_PRIORITY_CLASS
    INVALID_REQUEST
    PAST_LOOKBACK
    NO_NODES
    QUEUE_CORDONED
    UNKNOWN_QUEUE
    INVALID_WEIGHT
    TOO_CROWDED
    ROUND_LIMIT
    RATE_LIMIT
    GANG_EXCEEDS_BURST
    GANG_RATE_LIMIT
    QUEUE_RATE_LIMIT
    GANG_EXCEEDS_QUEUE_BURST
    GANG_QUEUE_RATE_LIMIT
    ROUND_BUDGET
    QUEUE_BUDGET
    CLASS_LIMIT
    FLOATING_RESOURCES
    CODE_COUNT

# How an entry stands.
cdef enum Standing:
    QUEUED_HERE     # waits for a node, or lost one in this round
    STAYS           # runs, and is not asked to come back
    WAITS           # runs, of a queue above its share: its turn is still to come
    RETURNED        # runs, and its turn has come
    PLACED_NOW      # runs since this pass
    GUEST           # a run of another pool

cdef enum:
    # In `Entry.verdict`, where 0 and more is an index of a reason.
    NO_VERDICT = -1
    NO_ROOM = -2         # for its shape: why is worked out when the round is over
    WANTED_KEPT = 4096

# Vectors of a lane, in this order.
cdef enum:
    HELD        # by its runs when the round began
    ASKED       # by its queued jobs
    FULL        # by its runs now
    ALLOCATED   # what counts for its turn: without those whose turn is to come
    AT_FIRST    # FULL when the pass began
    LOST        # in this pass
    PENALTY     # of short jobs
    VECTORS

cdef struct Entry:
    const Record *record
    int64_t leased_at     # of the run that it has, or had
    int64_t priority      # at which it is placed
    int64_t home_priority  # at which it had its home
    int32_t shape         # of its requirements; NOWHERE: none that a node could be asked for
    int32_t handle        # in the table
    int32_t node          # that it holds; NOWHERE: none
    int32_t home          # that it held when the round began; NOWHERE: it is new
    int32_t home_shape    # with which it held that
    int32_t lane          # NOWHERE: of no queue of this round
    int32_t team          # NOWHERE: it goes alone
    int32_t verdict
    int32_t rank          # in the line; NOWHERE: it never gives way
    int32_t place         # of its last decision in `decided`
    int32_t for_entry     # to which it gave way last
    uint32_t slot         # of its job in the snapshot, if the round reads one
    int32_t fell          # when that was, counted over the round
    uint8_t standing
    uint8_t preemptible   # as it is bound
    uint8_t cause         # why it gave way last
    uint8_t cause_before  # and the time before
    uint8_t method        # how its room was found
    uint8_t was_guest     # when the round began
    uint8_t took_room     # others gave way to it where it is
    uint8_t flips         # how often it lost such a place again
    uint8_t has_past      # a run or a history: nodes that it would rather not use

# The members of a gang: `members[first:first + count]`, the largest first while they are queued.
cdef struct Team:
    int32_t first
    int32_t count
    int32_t last          # the entry at which it stands
    int32_t lane
    int32_t shape         # NOWHERE: members differ
    int32_t fault         # a reason; NOWHERE: it can go
    int32_t signature     # what fails alike
    int32_t label         # in `labels`; NOWHERE: any nodes
    int32_t elsewhere     # members that run, but not here
    uint8_t running

cdef struct Lane:
    double weight
    double protected_share
    double budget         # its adjusted share
    int32_t first         # its queued entries: [first, first + count)
    int32_t count
    int32_t looked_at
    int32_t cursor
    int32_t wait_at       # in `waiting`, the heads of its units that are to come back
    int32_t wait_end
    int32_t again_at      # in `again`, those that lost their nodes in this round
    int32_t again_end
    int32_t head          # an entry; NOWHERE: none is left
    int32_t next_queued   # the next that is tried once `peeked`; NOWHERE: none is left
    int32_t tries
    int32_t new_jobs
    int32_t preemptible_runs
    int32_t stood_in_line    # runs that had to come back in the first pass
    int64_t first_turn       # of the turns of a pass, from 0; -1: none
    int64_t last_turn        # at which it last got something
    int64_t placed_priority  # job priority of what may give way and was placed; -1: none was
    uint8_t open          # its queued jobs may be placed
    uint8_t takes_part    # it has a weight that can be used
    uint8_t above         # its share: its runs have to come back
    uint8_t ended         # a limit: no new jobs
    uint8_t peeked
    uint8_t head_waits
    int32_t end_reason

cdef struct Reason:
    int64_t wanted
    int64_t had
    int32_t code
    int32_t resource      # NOWHERE: none

# A second try of a shape: other tolerations, a lower priority.
cdef struct Variant:
    int64_t priority
    int32_t shape
    int32_t after         # NOWHERE: the last

# Of `Shape.hope`.
cdef enum:
    UNKNOWN
    HOPEFUL
    HOPELESS

# What is known of a shape of the node table.
cdef struct Shape:
    int64_t priority
    const int64_t *amounts   # all that it asks for
    int32_t class_index
    int32_t variant          # the first; NOWHERE: none
    int32_t failed_in        # the pass in which it found no room
    int32_t reason           # why, once that was asked; or why it can have none
    uint8_t known
    uint8_t barred           # never tried: no such class
    uint8_t preemptible
    uint8_t hope             # whether any node could ever hold it

cdef struct SeenWanted:
    const void *wanted
    int32_t shape


cdef class RoundJobs:
    cdef readonly NodeTable table
    cdef readonly DominantResourceFairness fairness
    cdef readonly str pool
    cdef Py_ssize_t width
    cdef dict classes
    cdef Py_ssize_t class_count
    cdef object variants_of
    cdef object members_of
    cdef Py_ssize_t lookback
    cdef Py_ssize_t table_handles
    cdef int64_t now
    cdef bint ready
    cdef bint may_home     # jobs may be placed by what they tolerate themselves

    cdef Entry *entries
    cdef Py_ssize_t entry_count
    cdef Py_ssize_t entry_space
    cdef int32_t *entry_of       # by handle of the table, NOWHERE: none

    cdef list queue_names
    cdef dict lane_of
    cdef Lane *lanes
    cdef Py_ssize_t lane_count
    cdef Py_ssize_t lane_space
    cdef int64_t *vectors        # [lane][VECTORS][width]
    cdef int64_t *by_class       # [lane][class][width]: what runs now
    cdef int64_t *whole          # [width]: what all runs of the pool hold
    cdef int64_t *asked_by_class

    cdef list gangs              # (gang, [entries]) by team, until `prepare`
    cdef dict team_of
    cdef Team *teams
    cdef Py_ssize_t team_count
    cdef int32_t *members
    cdef int64_t *team_amounts   # [team][width]
    cdef list labels
    cdef dict label_of
    cdef Py_ssize_t signatures

    cdef Shape *shapes
    cdef Py_ssize_t shape_space
    cdef Variant *variants
    cdef Py_ssize_t variant_count
    cdef Py_ssize_t variant_space
    cdef list kept_requirements
    cdef SeenWanted seen[WANTED_KEPT]
    cdef Reason *reasons
    cdef Py_ssize_t reason_count
    cdef Py_ssize_t reason_space

    cdef Entry *new_entry(self, const Record *record, int32_t lane) except NULL
    cdef int32_t shape_of_kind(self, const Record *record) except -2
    cdef int32_t shape_of(self, Requirements requirements) except -2
    cdef int add_variants(self, int32_t shape, Requirements requirements) except -1
    cdef int32_t new_reason(self, int code, int32_t resource, int64_t wanted,
                            int64_t had) except -1 nogil
    cdef int muster(self, int32_t entry, bint running) except -1
    cdef int inspect(self, int32_t team, list found, object gang) except -1
    cdef list arranged(self, list found)
    cdef int allot_lane(self) except -1
    cdef int add_run(self, const Record *record) except -1
    cdef int count_elsewhere(self, str queue, str gang_id) except -1
    cdef int prepare(self) except -1
    cdef int must_fit(self, ResourceVector amounts) except -1
    cdef int count_asked(self, Py_ssize_t number, int32_t shape) except -1

    cdef inline int64_t *vector(self, Py_ssize_t lane, int which) noexcept nogil:
        return self.vectors + (lane * VECTORS + which) * self.width

    cdef inline const int64_t *amounts_of(self, const Entry *entry) noexcept nogil:
        """What the unit of *entry* asks for or holds."""
        if entry.team != -1:
            return self.team_amounts + entry.team * self.width
        return self.shapes[entry.shape].amounts


# Below, at or above 0: the order of two jobs by submit time, then by the UTF-8 bytes of the id.
cdef int compare_records(const Record *one, const Record *other) noexcept nogil
