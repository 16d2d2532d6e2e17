"""Blocks of a job file as their users wrote them: what is not written differs from zero.

`spec` merges them; the configuration gives defaults in the same form.
"""

from msgspec import UNSET, Struct, UnsetType, structs

from pyresched.durations import WrittenDuration
from pyresched.reschedule import ReschedulePolicy

__all__ = [
    "Block",
    "DisconnectBlock",
    "MigrateBlock",
    "RescheduleBlock",
    "RestartBlock",
    "UpdateBlock",
]


class Block(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fields of which any may be UNSET: not written, which differs from zero."""

    def written(self) -> dict[str, int | str | bool]:
        """The written fields by name, in the order of the block's fields."""
        fields = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return {name: value for name, value in fields if value is not UNSET}


class RestartBlock(Block, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A `restart` block: when a process is started again within its run."""

    attempts: int | UnsetType = UNSET
    interval: WrittenDuration | UnsetType = UNSET
    delay: WrittenDuration | UnsetType = UNSET
    mode: str | UnsetType = UNSET


class DisconnectBlock(Block, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A `disconnect` block: what becomes of a run whose node is out of reach."""

    lost_after: WrittenDuration | UnsetType = UNSET
    stop_on_client_after: WrittenDuration | UnsetType = UNSET
    replace: bool | UnsetType = UNSET
    reconcile: str | UnsetType = UNSET


class MigrateBlock(Block, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A `migrate` block: how many runs of a service leave draining nodes at once."""

    max_parallel: int | UnsetType = UNSET
    min_healthy_time: WrittenDuration | UnsetType = UNSET


class UpdateBlock(Block, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An `update` block: until when a new version of a service must come up.

    The last three are read so that they can be refused with a reason.
    """

    progress_deadline: WrittenDuration | UnsetType = UNSET
    min_healthy_time: WrittenDuration | UnsetType = UNSET
    canary: int | UnsetType = UNSET
    auto_promote: bool | UnsetType = UNSET
    auto_revert: bool | UnsetType = UNSET


class RescheduleBlock(Block, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A `reschedule` block: when a failed run is tried again."""

    attempts: int | UnsetType = UNSET
    interval: WrittenDuration | UnsetType = UNSET
    delay: WrittenDuration | UnsetType = UNSET
    delay_function: str | UnsetType = UNSET
    max_delay: WrittenDuration | UnsetType = UNSET
    unlimited: bool | UnsetType = UNSET

    def over(self, default: ReschedulePolicy) -> ReschedulePolicy:
        """The policy of this block where *default* fills what it does not write.

        Rule `unlimited-alone`: written `unlimited = true` makes attempts and interval that
        come from *default* unused, so they are 0.
        """
        written = self.written()
        if written.get("unlimited") is True:
            default = structs.replace(default, attempts=0, interval=0)
        return structs.replace(default, **written)
