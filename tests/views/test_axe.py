"""The pages in a real browser with axe-core, light and dark, with every part of them open."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from provision.commands.shared.snapshot_diff import diff_snapshots
from provision.verification import Report, read_report
from provision.verification.diff.compare import compare_reports
from provision.verification.diff.snapshot import read_snapshot
from provision.views.diff import report_html, snapshot_html
from tests.captures.pairs import load_pairs
from tests.support import require
from tests.views.builders import failed, hostile, render_page
from tests.views.test_html import chromium

pytestmark = [pytest.mark.browser, pytest.mark.npm]
ROOT = Path(__file__).parents[2]
AXE = ROOT / ".cache/npm/node_modules/axe-core/axe.min.js"
RECORDED = ROOT / "tests/reports/recorded"
SCHEMES = {"light": "1", "dark": "0"}
ASK = (
    "axe.run().then(r => { document.getElementById('o').textContent = "
    "JSON.stringify(r.violations.map(v => [v.id, v.impact, v.nodes[0].html])) })"
)


def violations(tmp_path: Path, page: str, scheme: str) -> list[Any]:
    """What axe-core finds. Its script runs because the page's own policy is taken out for it."""
    require("npm", AXE.exists(), "axe-core, which .ci/run installs, is not here")
    open_, count = re.subn(
        r'<meta http-equiv="Content-Security-Policy"[^>]*>',
        "",
        page.replace("<details", "<details open"),
    )
    assert count == 1
    path = tmp_path / "page.html"
    path.write_text(
        open_.replace(
            "</body>",
            '<output id="o">none</output><script '
            f'src="{AXE.as_uri()}"></script><script>{ASK}</script></body>',
        )
    )
    settings = f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}"
    dom = chromium(
        tmp_path,
        "--allow-file-access-from-files",
        "--virtual-time-budget=30000",
        settings,
        "--dump-dom",
        path.as_uri(),
    )
    said = re.search(r'<output id="o">(.*?)</output>', dom, re.DOTALL)
    assert said is not None
    assert said[1] != "none", "axe-core did not end"
    return list(json.loads(unescape(said[1])))


def recorded(name: str) -> Report:
    return read_report((RECORDED / f"{name}.json").read_bytes(), name)


def pages() -> dict[str, str]:
    found = {make.__name__: render_page(make(), "sample on here") for make in (failed, hostile)}
    for name in ("numpy-abi", "other-instruction-set"):
        found[f"diff-{name}"] = report_html.render_page(
            compare_reports(recorded("quickstart"), recorded(name), ("quickstart", name))
        )
    pair = next(pair for pair in load_pairs() if pair.name == "argument-renamed")
    a, b = (read_snapshot(getattr(pair, side), "x.json", side) for side in "ab")
    found["captures"] = snapshot_html.render_page(diff_snapshots(a, b, pair.error))
    return found


@pytest.mark.long(after=1)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    "name", ["failed", "captures", "hostile", "diff-numpy-abi", "diff-other-instruction-set"]
)
def test_axe_finds_nothing(tmp_path: Path, name: str, scheme: str) -> None:
    assert violations(tmp_path, pages()[name], scheme) == []


def test_axe_finds_what_is_there(tmp_path: Path) -> None:
    """The control of the test above: the same page with text that is too faint, and no language."""
    spoilt = (
        render_page(failed(), "x")
        .replace('<html lang="en">', "<html>")
        .replace("--soft:#55606a", "--soft:#b0b0b0")
    )
    assert {"html-has-lang", "color-contrast"} <= {
        id_ for id_, _, _ in violations(tmp_path, spoilt, "light")
    }
    dark = render_page(failed(), "x").replace("--soft:#a3aeb7", "--soft:#3a4248")
    assert "color-contrast" in {id_ for id_, _, _ in violations(tmp_path, dark, "dark")}
    assert violations(tmp_path, dark, "light") == []
