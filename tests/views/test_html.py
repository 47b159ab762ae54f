"""The page of a verification: complete, readable for everyone, and inert for any report."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import threading
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from provision.assets import find_asset
from provision.verification import read_report
from provision.verification.diff.compare import compare_reports
from provision.views.diff import report_html
from tests.support import require
from tests.views.builders import (
    check,
    failed,
    hostile,
    render_page,
    sample,
    stage,
    threshold,
    verified,
)

KEPT = Path(__file__).parents[1] / "reports"
CHROMIUM = next(
    (
        path
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (path := shutil.which(name))
    ),
    None,
)
QUIET = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=2000",
)
OFFLINE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
REMOTE = re.compile(
    r"""(?:src|href|action|data|poster|srcset|formaction)\s*=|url\(|@import|https?://""",
    re.IGNORECASE,
)


class Page(HTMLParser):
    """The elements, attributes and texts of a page."""

    VOID = frozenset({"meta", "link", "col", "path", "rect", "line", "br", "img", "wbr"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.broken_word = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.broken_word = tag == "wbr"
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag in self.VOID or self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        if self.broken_word:
            tag, before = self.texts.pop()
            self.texts.append((tag, before + data))
        else:
            self.texts.append((self.open[-1] if self.open else "", data))
        self.broken_word = False

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def text(self) -> str:
        return " ".join(" ".join(data for tag, data in self.texts if tag != "style").split())


@pytest.fixture(params=[verified, failed, hostile], ids=lambda make: make.__name__)
def document(request: pytest.FixtureRequest) -> dict[str, Any]:
    made: dict[str, Any] = request.param()
    return made


def test_every_element_is_closed(document: dict[str, Any]) -> None:
    assert Page(render_page(document, "t")).open == []


def test_nothing_is_fetched_and_nothing_runs(document: dict[str, Any]) -> None:
    page = Page(render_page(document, "t"))
    forbidden = {
        "script",
        "img",
        "iframe",
        "object",
        "embed",
        "form",
        "a",
        "base",
        "audio",
        "video",
    }
    assert not forbidden & {name for name, _ in page.elements}
    assert [link["href"] for link in page.named("link")] == ["data:,"]
    for name, attributes in page.elements:
        assert not [
            key for key in attributes if key.startswith("on") or key in ("src", "style", "srcset")
        ], name
    assert REMOTE.search("".join(data for tag, data in page.texts if tag == "style")) is None
    policy = [
        meta["content"]
        for meta in page.named("meta")
        if meta.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]


def test_it_is_accessible(document: dict[str, Any]) -> None:
    page = Page(render_page(document, "t"))
    assert page.named("html") == [{"lang": "en"}]
    assert page.named("title")
    assert all(cell.get("scope") in ("col", "row") for cell in page.named("th"))
    levels = [int(name[1]) for name, _ in page.elements if re.fullmatch("h[1-6]", name)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    drawings = page.named("svg")
    assert drawings
    assert all(
        drawing.get("aria-hidden") == "true" or drawing.get("aria-label") for drawing in drawings
    )
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {
        attributes["aria-labelledby"]
        for _, attributes in page.elements
        if "aria-labelledby" in attributes
    } <= set(ids)


def test_failures_come_first_with_declared_found_why_fix() -> None:
    text = Page(render_page(failed(), "sample")).text()
    story = [
        "NOT AS DECLARED",
        "2 checks failed, 17 passed",
        "Failures",
        "failed P02 locked packages",
        "expected torch 2.13.0+cu130",
        "found torch 2.13.0+cpu",
        "why another index",
        "fix provision apply",
        "unknown T03",
        "Proof None: the training passed, but P02, T02 and T03 did not.",
        "Warnings",
        "Expected and found",
        "Measurements and thresholds",
        "Packages 47 of 48",
        "All checks",
        "Stages",
        "Raw report",
    ]
    places = [text.index(part) for part in story]
    assert places == sorted(places)


def test_every_check_is_there() -> None:
    text = Page(render_page(verified(), "sample")).text()
    assert all(f"{one['id']} {one['title']}" in text for one in verified()["checks"])


def test_status_is_told_in_words_too() -> None:
    every = [
        check(f"X{n}", "g", "t", status)
        for n, status in enumerate(("pass", "fail", "warn", "skip", "unknown"))
    ]
    text = Page(render_page(sample("failed", every), "t")).text()
    assert all(
        f"{word} X{n}" in text
        for n, word in enumerate(("passed", "failed", "warning", "n/a", "unknown"))
    )


@pytest.mark.parametrize(
    ("measured", "widths", "excess"),
    [
        (0, ["0.5"], ""),
        (0.5, ["30.0"], ""),
        (1.0, ["60.0"], ""),
        (1.5, ["90.0"], ""),
        (188, [], "188 times the threshold"),
        (1e9, [], "1,000,000,000 times the threshold"),
        (-3, ["0.5"], ""),
    ],
)
def test_bars_are_in_proportion_to_the_limit(
    measured: float, widths: list[str], excess: str
) -> None:
    page = Page(
        render_page(
            sample(
                "verified",
                [check("N01", "g", "t", observed=measured, threshold=threshold(1.0, "u"))],
            ),
            "t",
        )
    )
    values = [
        shape["width"]
        for shape in page.named("rect")
        if (shape.get("class") or "").startswith("value pass")
    ]
    assert values == widths
    assert excess in page.text()
    assert ("times the threshold" in page.text()) is bool(excess)


def test_a_zero_bound_and_a_bound_without_a_number_draw_no_nonsense() -> None:
    checks = [
        check("N1", "g", "t", observed=3, threshold=threshold(0, "u")),
        check("N2", "g", "t", observed="text", threshold=threshold(1, "u")),
    ]
    values = [
        shape["width"]
        for shape in Page(render_page(sample("failed", checks), "t")).named("rect")
        if (shape.get("class") or "").startswith("value pass")
    ]
    assert values == ["100.0"]


def test_a_report_with_nothing_in_it_still_makes_a_page() -> None:
    assert "ERROR" in Page(render_page({}, "t")).text()


def test_secrets_are_redacted() -> None:
    token = "hf_" + "Zq3" * 10
    document = sample(
        "failed",
        [check("P06", "g", "t", "fail", observed=token, message=token)],
        stages=[stage("x", 1.0, tail=token)],
    )
    assert "Zq3" not in render_page(document, "t")


def test_no_raw_control_character(document: dict[str, Any]) -> None:
    assert (
        re.search(
            "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]",
            render_page(document, "\x1b\u202e"),
        )
        is None
    )


def test_template_text_is_not_evaluated() -> None:
    assert "{{7*7}}" in Page(render_page(hostile(), "{{7*7}}")).text()


PAIRS = [
    (text, ground) for text in ("ink", "soft", "good", "bad", "warn") for ground in ("page", "card")
]
PAIRS += [("good", "good-bg"), ("bad", "bad-bg"), ("warn", "warn-bg"), ("none", "none-bg")]


@pytest.mark.parametrize("scheme", [0, 1, 2], ids=["light", "dark", "print"])
@pytest.mark.parametrize(("text", "ground"), PAIRS)
def test_contrast(text: str, ground: str, scheme: int) -> None:
    """Text needs 4.5:1 (WCAG 2.2, success criterion 1.4.3)."""
    colours = _schemes()[scheme]
    assert _contrast(colours[text], colours[ground]) >= 4.5


@pytest.mark.parametrize("scheme", [0, 1, 2], ids=["light", "dark", "print"])
@pytest.mark.parametrize(
    ("shape", "ground"), [("fill", "track"), ("bad", "track"), ("warn", "track"), ("ink", "track")]
)
def test_contrast_of_bars(shape: str, ground: str, scheme: int) -> None:
    """Graphics needed to understand the page need 3:1 (WCAG 2.2, success criterion 1.4.11)."""
    colours = _schemes()[scheme]
    assert _contrast(colours[shape], colours[ground]) >= 3


def _schemes() -> list[dict[str, str]]:
    blocks = re.findall(
        r":root\{([^}]*)\}", find_asset("templates/page.css").read_text(encoding="utf-8")
    )
    found = [dict(re.findall(r"--([a-z-]+):(#[0-9a-f]+)", block)) for block in blocks]
    return [found[0], {**found[0], **found[1]}, {**found[0], **found[2]}]


def _contrast(one: str, other: str) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(c * 2 for c in colour[1:])
    parts = [int(digits[n : n + 2], 16) / 255 for n in (0, 2, 4)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def chromium(tmp_path: Path, *arguments: str) -> str:
    """Run Chromium on a page and return what it prints; its whole process group ends with it."""
    require("browser", CHROMIUM is not None, "Chromium is not installed")
    command = [
        str(CHROMIUM),
        *QUIET,
        OFFLINE,
        f"--user-data-dir={tmp_path / 'profile'}",
        *arguments,
    ]
    home = {**os.environ, "HOME": str(tmp_path)}
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=home,
        start_new_session=True,
    ) as browser:
        try:
            return browser.communicate(timeout=600)[0]
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(browser.pid, signal.SIGKILL)


@pytest.mark.browser
def test_in_a_browser_a_failed_report_has_its_headings(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(render_page(failed(), "sample on here"), encoding="utf-8")
    page = Page(chromium(tmp_path, "--dump-dom", (tmp_path / "page.html").as_uri()))
    headings = [data.strip() for tag, data in page.texts if tag in ("h1", "h2")]
    assert headings[:3] == ["sample on here", "Failures", "Proof"]
    assert {name for name, _ in page.elements} & {"table", "details", "svg"} == {
        "table",
        "details",
        "svg",
    }


class Recorder(ThreadingHTTPServer):
    """Serves one page at /page.html and remembers every path that was asked for."""

    def __init__(self, page: str) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.page = page.encode()
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answer(BaseHTTPRequestHandler):
    server: Recorder

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        body = self.server.page if self.path == "/page.html" else b""
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        return


LEAKS = (
    "<img src=/leak-image onerror=window.x=1><link rel=stylesheet href=/leak-style><script "
    "src=/leak-script></script><iframe src=/leak-frame></iframe>"
)


def visit(tmp_path: Path, text: str) -> tuple[Page, list[str]]:
    """Open a page in Chromium; return what the browser made of it and the paths it asked for."""
    with Recorder(text) as server:
        worker = threading.Thread(target=server.serve_forever)
        worker.start()
        try:
            dom = chromium(tmp_path, "--dump-dom", f"{server.address}/page.html")
        finally:
            server.shutdown()
            worker.join()
        return Page(dom), server.asked


@pytest.mark.browser
def test_in_a_browser_a_hostile_report_is_inert(tmp_path: Path) -> None:
    made = hostile()
    made["checks"].append(
        check(LEAKS, LEAKS, LEAKS, "fail", message=LEAKS, fix=LEAKS, expected=LEAKS, observed=LEAKS)
    )
    page, asked = visit(tmp_path, render_page(made, f"</title>{LEAKS}"))
    assert asked == ["/page.html"]
    assert not {"script", "img", "iframe", "a"} & {name for name, _ in page.elements}
    assert [link["href"] for link in page.named("link")] == ["data:,"]
    assert not [
        key for _, attributes in page.elements for key in attributes if key.startswith("on")
    ]
    assert "alert(1)" in page.text()


@pytest.mark.browser
def test_in_a_browser_the_recorder_sees_what_an_unescaped_page_fetches(tmp_path: Path) -> None:
    """The control of the test above: the same markup, not escaped, is noticed."""
    _, asked = visit(tmp_path, f"<!doctype html><title>t</title>{LEAKS}")
    assert {"/leak-image", "/leak-style", "/leak-script", "/leak-frame"} <= set(asked)


@pytest.mark.long(after=1)
@pytest.mark.browser
@pytest.mark.parametrize("width", [360, 1100])
def test_in_a_browser_nothing_is_wider_than_the_page(tmp_path: Path, width: int) -> None:
    """A frame of that width reports the scroll width of the page in it; the frame's own script runs
    because the policy is the inner page's.
    """
    pair = [
        read_report((KEPT / f"{name}.json").read_bytes(), name)
        for name in ("recorded/shadowed-package", "simulated/l4-one-of-two")
    ]
    pages = {
        "failed": render_page(failed(), "sample"),
        "hostile": render_page(hostile(), "sample"),
        "diff": report_html.render_page(compare_reports(*pair, ("here", "there"))),
    }
    for name, made in pages.items():
        (tmp_path / "page.html").write_text(made, encoding="utf-8")
        (tmp_path / "frame.html").write_text(
            f'<body><iframe id="f" src="page.html" width="{width}" '
            'height="800"></iframe><output id="o">none</output><script>'
            "onload = () => { const d = "
            "document.getElementById('f').contentDocument.documentElement;"
            "document.getElementById('o').textContent = d.scrollWidth + ' of ' + "
            "d.clientWidth }</script>",
            encoding="utf-8",
        )
        dom = chromium(
            tmp_path,
            "--allow-file-access-from-files",
            "--dump-dom",
            (tmp_path / "frame.html").as_uri(),
        )
        found = re.search(r'<output id="o">(\d+) of (\d+)</output>', dom)
        assert found, f"{name}: the frame did not load"
        assert int(found[1]) <= int(found[2]) <= width


@pytest.mark.parametrize(
    ("status", "measured", "band"),
    [
        ("pass", 0.5, [("0.0", "60.0")]),
        ("pass", 1.5, [("60.0", "40.0")]),
        ("fail", 1.5, [("0.0", "60.0")]),
        ("warn", 0.5, [("60.0", "40.0")]),
        ("pass", 1.0, []),
        ("unknown", 0.5, []),
    ],
)
def test_the_band_is_where_the_value_has_to_lie(
    status: str, measured: float, band: list[tuple[str, str]]
) -> None:
    page = Page(
        render_page(
            sample(
                "failed",
                [check("N01", "g", "t", status, observed=measured, threshold=threshold(1.0, "u"))],
            ),
            "t",
        )
    )
    assert [
        (shape["x"], shape["width"]) for shape in page.named("rect") if shape.get("class") == "band"
    ] == band


def test_stages_stand_one_after_another() -> None:
    page = Page(
        render_page(sample("verified", [], stages=[stage("one", 1.0), stage("two", 3.0)]), "t")
    )
    assert [
        (shape["x"], shape["width"])
        for shape in page.named("rect")
        if shape.get("class") == "value"
    ] == [("0.0", "25.0"), ("25.0", "75.0")]


def test_the_packages_that_the_spec_names_are_listed() -> None:
    readings = [
        {"key": "package.torch", "value": "2.13.0+cpu", "class": "identity"},
        {"key": "package.gone", "value": None, "class": "identity"},
    ]
    text = Page(render_page({**sample("verified", []), "readings": readings}, "t")).text()
    assert (
        "Packages that the spec declares 2 Package Version torch 2.13.0+cpu gone not installed"
        in text
    )


def test_numbers_and_times_are_never_broken() -> None:
    line = check("N02", "numerics", "fp32 precision", expected=2e-06, observed=3.1e-07)
    low = check("H06", "host", "disk space", "fail", message="free in tmp (63.57 GiB)")
    page = render_page(sample("verified", [line, low]), "sample")
    assert '<span class="whole">63.57 GiB</span>' in page
    assert '<span class="whole">3.1e-07</span>' in page
    assert '<span class="whole">2026-01-02T03:04:05Z</span>' in page
