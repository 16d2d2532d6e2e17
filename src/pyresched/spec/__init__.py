"""Job specs: from a file to typed values, merged with defaults, to the jobs that they ask for.

Owns what users write and how it is merged; relies on `config` for reading files, resources and
defaults. Whether a policy makes sense is told by `pyresched.reschedule.problems`, one floor up.
"""

from pyresched.spec.defaults import Origin, merge_reschedule
from pyresched.spec.expansion import expand
from pyresched.spec.policy_text import block_text, parse_block
from pyresched.spec.schema import GangBlock, GroupSpec, JobSpec, TaskSpec, load_spec, spec_from

__all__ = [
    "GangBlock",
    "GroupSpec",
    "JobSpec",
    "Origin",
    "TaskSpec",
    "block_text",
    "expand",
    "load_spec",
    "merge_reschedule",
    "parse_block",
    "spec_from",
]
