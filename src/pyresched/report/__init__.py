"""What a simulation came to, for people: records, pictures, a page."""

from pyresched.report.records import SimulationResult, Summary
from pyresched.report.wording import figures
from pyresched.report.write import PAGE_FILE, write

__all__ = ["PAGE_FILE", "SimulationResult", "Summary", "figures", "write"]
