"""provision diff of captures, descriptions of machines and mixes: what matters is named first."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from provision.commands.shared.snapshot_diff import diff_snapshots
from provision.errors import ExternalError
from provision.verification.diff.snapshot import Snapshot, read_snapshot
from provision.verification.diff.snapshot_model import SnapshotComparison
from provision.verification.diff.snapshot_summary import summarize_snapshots
from provision.views.diff import snapshot_html, snapshot_text
from provision.views.formatting import display_width
from tests import fork_server
from tests.captures.pairs import Pair, load_pairs

REPORT = Path(__file__).parents[1] / "reports" / "recorded" / "quickstart.json"
PAIRS = {pair.name: pair for pair in load_pairs()}
ENOUGH = 51


def compare(pair: Pair, error: str | None = None) -> SnapshotComparison:
    a, b = (read_snapshot(getattr(pair, name), "x.json", name) for name in "ab")
    return diff_snapshots(a, b, error)


def first_keys(found: SnapshotComparison) -> set[str]:
    return {item.key for cause in found.causes[:1] for item in cause.differences[:1]}


@pytest.mark.parametrize("with_error", [False, True])
def test_the_cause_among_harmless_differences_is_named_first(with_error: bool) -> None:
    missed = []
    for pair in PAIRS.values():
        found = compare(pair, pair.error if with_error else None)
        assert len(found.minor) >= 1, pair.name
        if not first_keys(found) & {*pair.causes}:
            missed.append((pair.name, [cause.message for cause in found.causes[:2]]))
    print(*missed, sep="\n")
    assert len(PAIRS) == 54
    assert len(missed) <= len(PAIRS) - ENOUGH, missed


def test_a_problem_names_its_side_its_reason_and_its_fix() -> None:
    found = compare(PAIRS["driver-too-old"])

    assert summarize_snapshots(found) == (
        "the difference that matters: on b, driver 470.182.03 is too old for torch 2.6.0+cu124 "
        "(CUDA 12.4): it needs 525.60.13 or newer"
    )
    first = found.causes[0]
    assert (first.side, first.severity.value, first.layer.value) == ("b", "error", "GPU and driver")
    assert first.fix.startswith("use a machine or image with a newer driver")
    assert "CUDA Compatibility" in first.source
    assert first.differences[0].followers == ("driver.cuda", "driver.major")
    turned = diff_snapshots(found.b, found.a, None)
    assert turned.causes[0].side == "a"


def test_an_error_puts_what_it_is_about_before_a_stronger_problem() -> None:
    pair = PAIRS["argument-renamed"]

    assert compare(pair).causes[0].id == "PKG001"  # accelerate is too old, which is an error
    found = compare(pair, pair.error)
    assert (found.causes[0].id, found.causes[0].side) == ("TRN011", "")
    assert "evaluation_strategy" in found.causes[0].message
    assert found.error is not None
    assert found.error.line.endswith("unexpected keyword argument 'evaluation_strategy'")
    assert found.causes[0].error.startswith("this error means: ")


def test_an_error_that_no_difference_explains_is_said_to_have_no_cause() -> None:
    found = compare(PAIRS["shm-64-mib"], "ZeroDivisionError: division by zero")

    assert summarize_snapshots(found).startswith(
        "no difference between a and b is known to cause this error; the first difference "
        "that matters anyway: on b, /dev/shm has only 64 MiB"
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("module-shadowed", "is imported instead of the module datasets"),
        (
            "standard-module-shadowed",
            "random.py in the working folder is imported instead of the module random",
        ),
        (
            "package-shadowed-by-a-folder",
            "torch/ in the working folder is imported instead of the module torch",
        ),
        ("working-folder-on-a-drive", "the working folder is on a drive mount (fuse.drive)"),
        ("cache-on-a-network-file-system", "cache is on a network file system (nfs4)"),
    ],
)
def test_an_error_of_a_shadowed_module_or_a_mount_names_it_first(name: str, words: str) -> None:
    found = compare(PAIRS[name], PAIRS[name].error)

    assert summarize_snapshots(found).startswith("the likeliest cause of the error: on b, ")
    assert words in found.causes[0].message
    assert found.causes[0].error
    # Without the file or the mount, the same error has no known cause here.
    assert compare(PAIRS[name]._replace(b=PAIRS[name].a), PAIRS[name].error).causes == ()


def test_a_shadowed_module_that_the_error_does_not_name_is_not_its_cause() -> None:
    row = {"module": "requests", "file": "requests.py", "folder": "the working folder"}
    sides = snapshot("a"), snapshot("b", shadowed=[row], packages={"numpy": capture_row("1.26.4")})
    error = "ValueError: numpy.dtype size changed, may indicate binary incompatibility"
    found = diff_snapshots(*sides, error)
    frames = f'File "/home/u/my requests/requests.py", line 3, in get\n{error}'
    installed = f'File "/opt/venv/lib/python3.11/site-packages/requests/api.py", line 3\n{error}'

    related = {cause.id: cause.error for cause in found.causes}
    assert related["P03"] == ""
    related = {cause.id: cause.error for cause in diff_snapshots(*sides, frames).causes}
    assert related["P03"] == "the traceback goes through it"
    related = {cause.id: cause.error for cause in diff_snapshots(*sides, installed).causes}
    assert related["P03"] == ""


def test_a_shadowed_module_follows_from_no_package() -> None:
    row = {"module": "requests", "file": "requests.py", "folder": "the working folder"}
    other = snapshot("b", shadowed=[row], packages={"numpy": capture_row("1.26.4")})
    found = diff_snapshots(snapshot("a"), other, None)

    every = [item for cause in found.causes for item in cause.differences]
    assert all("packages.shadowed" not in item.followers for item in (*every, *found.differences))
    assert found.causes[0].message == (
        "requests.py in the working folder is imported instead of the module requests"
    )
    assert found.causes[0].fix.startswith("rename requests.py and delete its __pycache__")


def capture_row(version: str) -> dict[str, Any]:
    return {"version": version, "origin": "pip", "requires": []}


def test_a_folder_that_is_not_writable_is_the_first_difference_of_its_problem() -> None:
    readings = {"folder.working": "not writable: Read-only file system", "folder.content": "absent"}
    found = diff_snapshots(snapshot("a"), snapshot("b", readings=readings), None)

    assert (
        found.causes[0].message == "the working folder (.) is not writable: Read-only file system"
    )
    assert [item.key for item in found.causes[0].differences] == ["folder.working"]


def test_a_forged_list_of_shadowed_modules_is_shown_as_text() -> None:
    shadowed = [1, {"module": ["x"]}, "a" * 9999, {"module": "m", "file": "\x1b[31m", "folder": 3}]
    found = diff_snapshots(snapshot("a"), snapshot("b", shadowed=shadowed), None)

    text = snapshot_text.render_text(found, False, 100, True)
    assert "\x1b" not in text
    assert len(text) < 9000


def test_one_environment_does_not_differ_from_itself() -> None:
    pair = PAIRS["shm-64-mib"]
    found = compare(pair._replace(b=pair.a))

    assert found.is_same
    assert (found.causes, found.differences, found.minor) == ((), (), ())
    assert summarize_snapshots(found) == "a and b have no difference that matters"
    assert "NOTHING THAT MATTERS DIFFERS" in snapshot_html.render_page(found)


def test_a_problem_of_both_sides_is_no_difference() -> None:
    pair = PAIRS["shm-64-mib"]
    found = compare(pair._replace(a=pair.b))

    assert found.is_same
    assert [problem.id for problem in found.shared] == ["H07"]
    assert "1 problem on both sides" in snapshot_text.render_text(found, False, 100, False)
    assert "/dev/shm has only 64 MiB" in snapshot_text.render_text(found, False, 100, True)


def test_a_report_is_compared_with_a_capture_by_what_both_observed() -> None:
    report = read_snapshot(REPORT.read_bytes(), "r.json", "report")
    capture = read_snapshot(PAIRS["driver-too-old"].a, "c.json", "capture")
    found = diff_snapshots(report, capture, None)

    assert found.is_comparable
    assert "python.minor" not in found.one_sided_keys
    assert "package.aiohttp" in found.one_sided_keys  # a report lists declared packages only
    assert "package.transformers" in first_keys(found)


def capture(**parts: Any) -> bytes:
    document = json.loads(PAIRS["driver-too-old"].a)
    readings = {**document["readings"], **parts.pop("readings", {})}
    packages = {**document["packages"], **parts.pop("packages", {})}
    return json.dumps({**document, "readings": readings, "packages": packages, **parts}).encode()


def snapshot(name: str, **parts: Any) -> Snapshot:
    return read_snapshot(capture(**parts), "x.json", name)


@pytest.mark.parametrize(
    ("readings", "words"),
    [
        ({"gpu.name": "NVIDIA L4", "driver.version": "510.47.03"}, "is too old for torch"),
        (
            {"gpu.name": "Tesla K80", "gpu.compute_capability": "3.7"},
            "no longer supports Tesla K80; 470 is the last",
        ),
        ({"host.glibc": "2.12"}, "glibc 2.12 is older than"),
        ({"torch.version": "2.6.0", "torch.cuda": None}, "is a CPU build"),
        ({"gpu.count": 0}, "0 visible GPUs instead of 1"),
        ({"host.ram_bytes": 2**33}, "8 GiB of memory instead of"),
        ({"gpu.vram_bytes": 2**33}, "8 GiB of GPU memory instead of"),
        ({"host.nofile": 64}, "only 64 open files are allowed"),
        ({"driver.error": 18}, "the driver's library and kernel module have different versions"),
    ],
)
def test_each_problem_of_a_machine_is_found(readings: dict[str, Any], words: str) -> None:
    found = diff_snapshots(snapshot("good"), snapshot("bad", readings=readings), None)

    every = [(cause.side, text) for cause in found.causes for text in (cause.message, *cause.also)]
    assert any(side == "b" and words in text for side, text in every), every


def test_a_variable_counts_whatever_its_value() -> None:
    names = json.loads(capture())["variables"]
    found = diff_snapshots(
        snapshot("good"), snapshot("bad", variables=[*names, "LD_PRELOAD", "PAGER"]), None
    )

    assert [cause.message for cause in found.causes] == ["the variable LD_PRELOAD is set"]
    assert [item.key for item in found.minor] == ["env.PAGER"]


def test_a_capture_in_utf_16_is_read() -> None:
    text = PAIRS["driver-too-old"].a.decode()
    found = read_snapshot(b"\xff\xfe" + text.encode("utf-16-le"), "x.json", "x")

    assert found.packages["torch"] == "2.6.0+cu124"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it is empty"),
        (b"Traceback (most recent call last):", "x.json is not a provision report or capture"),
        (b"\xff\xfe{\x00\x00\xd8", "x.json is damaged: it is not valid JSON"),
        (b'{"schema": "provision.capture/1", ', "x.json is damaged: it is not valid JSON"),
        (b"[" * 100_000, "it is not valid JSON"),
        (b"[]", "x.json is not a provision report or capture"),
        (b'{"schema": 1}', "x.json is not a provision report or capture"),
        (b'{"schema": "provision.capture/2"}', "which this version cannot read"),
        (b'{"schema": "provision.capture/1", "readings": {}}', "it has no packages"),
        (
            b'{"schema": "provision.capture/1", "readings": [], "packages": {}}',
            "readings is not an object",
        ),
        (
            b'{"schema": "provision.capture/1", "readings": {}, "packages": {"a": 1}}',
            "package a has no version",
        ),
    ],
)
def test_a_document_that_cannot_be_read_is_refused(content: bytes, words: str) -> None:
    with pytest.raises(ExternalError) as raised:
        read_snapshot(content, "x.json", "x")

    assert words in f"{raised.value.what}: {raised.value.why}"
    assert raised.value.hint


def test_too_many_packages_are_refused() -> None:
    packages = {f"p{number}": {"version": "1"} for number in range(20_001)}
    with pytest.raises(ExternalError, match="is damaged"):
        read_snapshot(capture(packages=packages), "x.json", "x")


FORGED = {
    "packages": {"torch": {"version": "<script>\x1b[31m"}, "numpy": {"version": "x" * 9000}},
    "readings": {
        "gpu.name": ["<b>", {"deep": [1]}],
        "gpu.compute_capability": "9" * 400,
        "driver.version": 7,
        "host.glibc": "x",
        "host.ram_bytes": 1e308,
        "gpu.count": "many",
        "hub.offline_by": "HF_HUB_OFFLINE",
        "hf_" + "a" * 36: "ghp_" + "a" * 36,
    },
    "modules": {"numpy": {"package": 7, "loaded": "1.0"}, "x": 3},
    "variables": ["A\nB", "\u202e"],
}


def test_a_forged_capture_breaks_nothing() -> None:
    forged = snapshot("bad\x1b[31m<i>", **FORGED)
    for found in (
        diff_snapshots(snapshot("good"), forged, None),
        diff_snapshots(forged, snapshot("good"), "ImportError: numpy"),
    ):
        shown = snapshot_text.render_text(found, False, 80, True)
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert all(display_width(line) <= 80 for line in shown.splitlines())
        page = snapshot_html.render_page(found)
        assert "<script>" not in page
        assert "<i>" not in page
        assert "ghp_" + "a" * 36 not in page
        assert "\x1b" not in snapshot_text.render_markdown(found)
        json.dumps(snapshot_text.to_json(found))


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return fork_server.run(
        [*fork_server.ARGV, "diff", *arguments], cwd=folder, capture_output=True, text=True
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pair = PAIRS["shm-64-mib"]
    (tmp_path / "laptop.json").write_bytes(pair.a)
    (tmp_path / "box.json").write_bytes(pair.b)
    (tmp_path / "trace.txt").write_text(pair.error)
    return tmp_path


def test_the_command_compares_two_captures_without_a_spec(folder: Path) -> None:
    (folder / "provision.yaml").write_text("this is: [no spec")
    done = run(folder, "laptop.json", "box.json", "--error", "trace.txt")

    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("the likeliest cause of the error: on box, /dev/shm has only 64 MiB")
    assert any(line.startswith("  fix       start the container with --shm-size") for line in lines)
    assert "harmless difference" in lines[-1]


@pytest.mark.parametrize("output_format", ["json", "markdown", "html"])
def test_the_command_writes_each_format(folder: Path, output_format: str) -> None:
    done = run(folder, "laptop.json", "box.json", "--output-format", output_format)

    assert done.returncode == 1
    assert "/dev/shm has only 64 MiB" in done.stdout.replace("\\", "")
    if output_format == "json":
        document = json.loads(done.stdout)
        assert (document["schema"], document["version"]) == ("provision.comparison/1", 1)
        assert document["causes"][0]["differences"][0]["key"] == "host.shm_bytes"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("laptop.json", "./laptop.json"), "are the same file"),
        (("laptop.json", "missing.json"), "missing.json"),
        (("laptop.json", "box.json", "--error", "missing.txt"), "missing.txt"),
        (("laptop.json", "missing.json"), "help: use the output of `provision capture`"),
        (("laptop.json", "laptob.json"), "help: did you mean 'laptop.json'?"),
        (("laptop.json", "boxx"), "help: did you mean 'box.json'?"),
        (("laptop.json", "box"), "help: did you mean 'box.json'?"),
        (("laptop.json", "trace.txt"), "trace.txt is not a provision report or capture"),
        (("laptop.json", "list.json"), "list.json is not a provision report or capture"),
        (("laptop.json", "nothing"), "nothing is not a report or a capture"),
        (("laptop.json", "nothing"), "help: to compare targets, add their spec"),
    ],
)
def test_the_command_refuses_what_it_cannot_compare(
    folder: Path, arguments: tuple[str, ...], words: str
) -> None:
    (folder / "list.json").write_text("[]")
    done = run(folder, *arguments)

    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_two_reports_are_compared_by_what_was_observed_next_to_an_error(folder: Path) -> None:
    other = REPORT.with_name("small-shm.json")
    plain = run(folder, str(REPORT), str(other))
    next_to_error = run(folder, str(REPORT), str(other), "--error", "trace.txt")

    assert plain.stdout.startswith("works on quickstart, fails on small-shm")
    assert next_to_error.stdout.startswith("the likeliest cause of the error: on small-shm")
