"""The page and pictures of a result: whole, self-contained, and drawn by a real browser."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from kit.results import result
from pyresched import report
from pyresched.report import page, plots

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the report of a small result."""
    folder = tmp_path_factory.mktemp("report")
    names = [path.name for path in report.write(result(), folder)]
    assert names == ["report.html", *(f"{name}.png" for name in plots.PICTURES)]
    return folder


def test_pictures_are_png_of_some_size(written: Path) -> None:
    """Each picture is a PNG, and wide enough to read."""
    for name in plots.PICTURES:
        picture = (written / f"{name}.png").read_bytes()
        assert picture.startswith(b"\x89PNG\r\n")
        assert int.from_bytes(picture[16:20], "big") > 900


def test_the_page_fetches_nothing(written: Path) -> None:
    """No element of the page points outside it."""
    text = (written / "report.html").read_text(encoding="utf-8")
    markup = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r"\b(src|href|url)\b|http", markup)
    assert text.count("</script>") == 2


def test_text_from_the_log_cannot_break_the_page() -> None:
    """A queue or log named like markup is shown, not run."""
    made = msgspec.structs.replace(result(jobs=5), log="</script><b>x")
    job = msgspec.structs.replace(made.jobs[0], queue="</script><script>alert(1)")
    made = msgspec.structs.replace(made, jobs=(job, *made.jobs[1:]))
    specs = {name: chart.to_dict() for name, chart in plots.charts(made).items()}
    text = page.page(made, specs)
    assert text.count("</script>") == 2
    assert "alert(1)" in text
    assert "<b>x" not in text


def test_a_result_without_runs_is_drawn(tmp_path: Path) -> None:
    """Nothing ran, nothing waited: the pictures are empty, not missing."""
    made = result(jobs=1)
    empty = msgspec.structs.replace(made, jobs=(), runs=(), samples=(), outages=(), ended_at=0)
    assert len(report.write(empty, tmp_path)) == 5


@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine to open the page with")
def test_a_browser_draws_every_picture(written: Path, tmp_path: Path) -> None:
    """Opened as a file without network, each figure holds its drawing."""
    assert BROWSER is not None
    shown = subprocess.run(
        [
            *(BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"),
            *("--no-first-run", "--disable-background-networking", "--disable-sync"),
            *("--disable-component-update", f"--user-data-dir={tmp_path}"),
            *("--virtual-time-budget=20000", "--dump-dom", (written / "report.html").as_uri()),
        ],
        capture_output=True,
        check=True,
        text=True,
        timeout=120,
    ).stdout
    for name in plots.PICTURES:
        figure = re.search(rf'<figure id="{name}"(.*?)</figure>', shown, re.DOTALL)
        assert figure, name
        assert "<canvas" in figure[1] or "<svg" in figure[1], name


def test_a_missing_extra_says_what_to_install() -> None:
    """Without altair, drawing is one sentence that names the extra."""
    code = (
        "import sys; sys.modules['altair'] = None\n"
        "from pathlib import Path; from pyresched import report, errors\n"
        "try: report.write(None, Path('.'))\n"
        "except errors.MissingExtra as missing: print(missing)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert said.stdout.strip() == (
        "pictures need altair and vl-convert: pip install 'pyresched[plot]'"
    )
