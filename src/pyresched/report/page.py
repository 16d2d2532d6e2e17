"""One HTML page that opens without a network: figures on top, then the pictures, live.

The viewer's JavaScript is inside the page; nothing is fetched. Needs the extra `plot`.
"""

import html
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pyresched.errors import MissingExtra
from pyresched.report.records import SimulationResult
from pyresched.report.wording import figures

try:
    import vl_convert
except ImportError as missing:
    raise MissingExtra(
        "the page needs altair and vl-convert: pip install 'pyresched[plot]'"
    ) from missing

__all__ = ["document", "page"]

_SNIPPET: Final = "window.vegaEmbed = vegaEmbed;"
_STYLE: Final = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #22272e; margin: 2rem auto; max-width: 1080px;
       padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0 0 .2rem; }
p.source { color: #59636e; margin: 0 0 1.5rem; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(210px, 1fr)); gap: .7rem;
     margin: 0 0 2rem; }
dl div { border: 1px solid #e2e6ea; border-radius: 8px; padding: .55rem .8rem; }
dt { color: #59636e; font-size: .82rem; }
dd { margin: 0; font-size: 1.15rem; font-variant-numeric: tabular-nums; }
dd small { color: #59636e; font-size: .8rem; display: block; }
figure { margin: 0 0 1.8rem; overflow-x: auto; }
ul.notes { color: #59636e; }
"""


def page(result: SimulationResult, specs: Mapping[str, Mapping[str, Any]]) -> str:
    """The page of *result* with the Vega-Lite *specs* of its pictures by name."""
    cells = "".join(
        f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(value)}"
        + (f"<small>{html.escape(detail)}</small>" if detail else "")
        + "</dd></div>"
        for name, value, detail in figures(result.summary)
    )
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in result.notes)
    return document(
        f"{result.log}: simulation",
        f"Simulation of {result.log}",
        _source(result),
        specs,
        above=f"<dl>{cells}</dl>\n",
        below=f'<ul class="notes">{notes}</ul>\n' if notes else "",
    )


def document(
    title: str,
    heading: str,
    source: str,
    specs: Mapping[str, Mapping[str, Any]],
    *,
    above: str = "",
    below: str = "",
) -> str:
    """A page of the pictures *specs* by name, with HTML *above* and *below* them."""
    places = "".join(f'<figure id="{name}"></figure>' for name in specs)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{html.escape(heading)}</h1>\n"
        f'<p class="source">{html.escape(source)}</p>\n'
        f"{above}{places}\n{below}"
        f"<script>{_viewer()}</script>\n"
        f"<script>{_embedding(specs)}</script>\n</body>\n</html>\n"
    )


def _source(result: SimulationResult) -> str:
    summary = result.summary
    lost = f", {summary.nodes_lost:,} node losses" if summary.nodes_lost else ""
    return (
        f"{summary.jobs.total:,} jobs on {summary.nodes:,} nodes with {summary.cores:,} cores"
        f"{lost}; seed {summary.seed}"
    )


def _embedding(specs: Mapping[str, Mapping[str, Any]]) -> str:
    options = {"actions": {"export": True, "source": False, "compiled": False, "editor": False}}
    calls: Sequence[str] = [
        f"vegaEmbed('#{name}', {_literal(spec)}, {_literal(options)});"
        for name, spec in specs.items()
    ]
    return "\n".join(calls)


def _literal(value: object) -> str:
    """*value* as JavaScript that may stand in a script element: no `<` in it."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _viewer() -> str:
    """The bundle of Vega, Vega-Lite and Vega-Embed, with nothing in it that ends its element."""
    return vl_convert.javascript_bundle(_SNIPPET).replace("</script", "<\\/script")
