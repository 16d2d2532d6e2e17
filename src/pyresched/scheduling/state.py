"""What a round hands to the next one over the same pool."""

from msgspec import Struct

__all__ = ["RoundState"]


class RoundState(Struct, frozen=True, kw_only=True):
    """Carried from round to round, in and out; `RoundState()` starts a pool.

    This version of the round keeps nothing. Whatever must outlive a round (tokens of rate
    limits, penalties) becomes a field here, never an attribute of something else, so that a
    saved state and the same arguments give the same round again.
    """
