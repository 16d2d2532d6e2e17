"""The production scheduler under a virtual clock, on logs of real clusters or made ones.

`simulate` is the whole of it in one call; formats, engine, figures and generator lie below.
"""

from pyresched.simulator.checks import Checks
from pyresched.simulator.engine import CheckFailed, Moment
from pyresched.simulator.simulation import simulate

__all__ = ["CheckFailed", "Checks", "Moment", "simulate"]
