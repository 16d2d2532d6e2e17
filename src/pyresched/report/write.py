"""Pictures and page of a result, written to a folder. Needs the extra `plot`.

`plots` and `page` import the extra, so this module loads them only when it is asked to write.
"""

from pathlib import Path
from typing import Final

from pyresched.report.records import SimulationResult

__all__ = ["PAGE_FILE", "write"]

PAGE_FILE: Final = "report.html"


def write(result: SimulationResult, folder: Path) -> tuple[Path, ...]:
    """Draw *result* into *folder*, which is there: `report.html` and one PNG a picture.

    Returns what was written, the page first. Raises MissingExtra when `plot` is not installed.
    """
    import vl_convert  # noqa: PLC0415 - the same

    from pyresched.report import page, plots  # noqa: PLC0415 - the extra loads only when drawing

    specs = {name: chart.to_dict() for name, chart in plots.charts(result).items()}
    written = [folder / PAGE_FILE]
    written[0].write_text(page.page(result, specs), encoding="utf-8")
    for name, spec in specs.items():
        picture = folder / f"{name}.png"
        picture.write_bytes(vl_convert.vegalite_to_png(spec, scale=1.5))
        written.append(picture)
    return tuple(written)
