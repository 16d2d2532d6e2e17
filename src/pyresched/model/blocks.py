"""Blocks of a job file as their users wrote them: what is not written differs from zero.

`spec` merges them; the configuration gives defaults in the same form.
"""

from msgspec import UNSET, Struct, UnsetType, structs

from pyresched.durations import WrittenDuration
from pyresched.reschedule import ReschedulePolicy

__all__ = ["RescheduleBlock"]


class RescheduleBlock(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A `reschedule` block as written: what is not written is UNSET, which differs from zero."""

    attempts: int | UnsetType = UNSET
    interval: WrittenDuration | UnsetType = UNSET
    delay: WrittenDuration | UnsetType = UNSET
    delay_function: str | UnsetType = UNSET
    max_delay: WrittenDuration | UnsetType = UNSET
    unlimited: bool | UnsetType = UNSET

    def written(self) -> dict[str, int | str | bool]:
        """The written fields by name, in the order of the policy's fields."""
        fields = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return {name: value for name, value in fields if value is not UNSET}

    def over(self, default: ReschedulePolicy) -> ReschedulePolicy:
        """The policy of this block where *default* fills what it does not write.

        Rule `unlimited-alone`: written `unlimited = true` makes attempts and interval that
        come from *default* unused, so they are 0.
        """
        written = self.written()
        if written.get("unlimited") is True:
            default = structs.replace(default, attempts=0, interval=0)
        return structs.replace(default, **written)
