from collections.abc import Iterable

from typing_extensions import Buffer

from pyresched._core.views import RescheduleTracker
from pyresched.ids import Instant
from pyresched.reschedule.policy import ReschedulePolicy

def next_many(
    policies: ReschedulePolicy | Iterable[ReschedulePolicy | None] | None,
    trackers: Iterable[RescheduleTracker | None],
    failed_at: Instant | list[Instant] | tuple[Instant, ...] | Buffer,
) -> dict[str, memoryview]:
    """What policies say of many runs that failed, as columns by name.

    *trackers*: a sequence of `RescheduleTracker` or None, one for each run. *policies*: one
    policy (or None) for all of them, or a sequence of these; each object is read once. *failed_at*
    (ns): one int for all, or int64: a list, a buffer, an Arrow column.

    Answers as `next_reschedule` does of each alone, in int64 columns `at`, `delay`, `attempted`
    and `attempts`, and int8 columns `eligible` (0 or 1) and `reason`, the place in
    `tuple(VerdictReason)`. Numbers of a policy that lie past int64 count as its ends. Raises
    InputError for columns of other lengths, TypeError by row for what is no policy or tracker.
    """
