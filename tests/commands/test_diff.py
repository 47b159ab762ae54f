"""provision diff: which difference between two verifications matters, told of recorded reports."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from provision.agent.probe.checks import CHECKS
from provision.verification import Report, read_report
from provision.verification.diff.compare import compare_reports
from provision.verification.diff.summary import summarize_comparison
from provision.views.diff import report_html, report_text
from provision.views.formatting import display_width
from provision.views.report import html, junit, text
from tests import fork_server

RECORDED = Path(__file__).parents[1] / "reports" / "recorded"
SIMULATED = RECORDED.with_name("simulated")


def recorded(name: str) -> Report:
    return read_report((RECORDED / f"{name}.json").read_bytes(), name)


def simulated(name: str) -> Report:
    return read_report((SIMULATED / f"{name}.json").read_bytes(), name)


@pytest.mark.parametrize(
    ("one", "other", "check", "difference"),
    [
        ("quickstart", "accelerate-too-old", "P02", "package.accelerate 1.15.0 -> 0.26.1"),
        ("quickstart", "numpy-abi", "P02", "package.pandas 3.1.1 -> 2.1.4"),
        ("quickstart", "small-shm", "H07", "host.shm 23.54 GiB -> 64 MiB"),
        ("quickstart", "shadowed-package", "P03", "env.PYTHONPATH absent -> ~/demo/shadow"),
        ("cpu-build", "cu130-build", "P02", "package.torch 2.13.0+cpu -> 2.13.0+cu130"),
        ("declared-python", "another-python", "P01", "python.version 3.11.7 -> 3.12.1"),
    ],
)
def test_the_difference_that_matters_is_named_first(
    one: str, other: str, check: str, difference: str
) -> None:
    found = compare_reports(recorded(one), recorded(other), (one, other))

    assert found.check_changes[0].id == check
    assert summarize_comparison(found).startswith(f"works on {one}, fails on {other}: {check} ")
    assert f"the decisive difference: {difference}" in summarize_comparison(found)
    turned = compare_reports(recorded(other), recorded(one), (other, one))
    assert summarize_comparison(turned).startswith(f"works on {one}, fails on {other}: {check} ")


@pytest.mark.parametrize(
    ("one", "other", "check", "difference"),
    [
        ("l4", "l4-old-driver", "D02", "driver.version 580.82.07 -> 535.261.03"),
        ("l4", "l4-declared-t4-there", "D03", "gpu.name NVIDIA L4 -> Tesla T4"),
        (
            "l4",
            "l4-throttled",
            "D06",
            "nvml.slowed none -> hardware slowdown, hardware thermal slowdown",
        ),
        ("l4", "l4-lost", "D01", "a GPU is lost: the driver can no longer reach it"),
        ("l4", "l4-ecc-errors", "D05", "nvml.uncorrected 0 -> 3"),
        ("l4-two", "l4-one-of-two", "D01", "nvml.count 2 -> 1"),
        ("l4-two", "l4-remap-pending", "D05", "nvml.remap_pending False, False -> True"),
        (
            "l4",
            "l4-one-of-two",
            "D01",
            "the declared values, 1 x L4 on l4, 2 x L4 on l4-one-of-two",
        ),
        (
            "l4-old-driver",
            "l4-one-of-two",
            "D01",
            "the declared values, 1 x L4 on l4-old-driver, 2 x L4 on l4-one-of-two",
        ),
        (
            "t4",
            "l4-declared-t4-there",
            "D03",
            "the declared values, T4 on t4, L4 on l4-declared-t4-there",
        ),
        (
            "l4-by-nvidia-smi",
            "l4-remap-failed",
            "D05",
            "no recorded difference explains this (the card's memory is faulty: rows could",
        ),
    ],
)
def test_of_simulated_cards_too_the_difference_that_matters_is_named_first(
    one: str, other: str, check: str, difference: str
) -> None:
    found = compare_reports(simulated(one), simulated(other), (one, other))

    assert found.check_changes[0].id == check
    assert f"the decisive difference: {difference}" in summarize_comparison(found)
    assert simulated(other).document["subject"][
        "simulated"
    ]  # none of these pairs is of real cards, and each says so


def kept(name: str) -> Report:
    return simulated(name) if (SIMULATED / f"{name}.json").exists() else recorded(name)


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        # In the order in which it works and fails, whichever side was named first.
        (
            "accelerate-too-old",
            "quickstart",
            "the decisive difference: package.accelerate 1.15.0 -> 0.26.1",
        ),
        # What fails on the other side only is not counted among what fails on this one.
        (
            "shadowed-package",
            "small-shm",
            (
                "fails on small-shm: H07 shared memory; the decisive difference: host.shm "
                "23.54 GiB -> 64 MiB; P03 nothing else "
            ),
        ),
        ("shadowed-package", "small-shm", "in the way and 8 more fail only on shadowed-package"),
        # Of other locks, what a check says; another Python makes no package another than locked.
        (
            "python-3.12",
            "accelerate-too-old",
            (
                "fails on accelerate-too-old: P02 locked packages; the decisive "
                "difference: 1 of 48 locked packages differ: "
            ),
        ),
        (
            "python-3.12",
            "another-python",
            "the decisive difference: the declared values, 3.12 under ",
        ),
        # A failure is told of where the other side was not asked for it, or fails as well.
        (
            "cpu-build",
            "small-shm",
            (
                "H07 shared memory fails on small-shm and does not apply to cpu-build, 2 "
                "checks with different results (E02, H08)"
            ),
        ),
        (
            "python-3.12",
            "l4-ecc-errors",
            "D05 GPU memory errors fails on l4-ecc-errors and was not run on python-3.12",
        ),
        (
            "l4-ecc-errors",
            "l4-remap-failed",
            "no identity readings or checks differ; D05 GPU memory errors fails on both",
        ),
        (
            "l4-lost",
            "l4-library-mismatch",
            "(and 2 that depend on it); D01 driver responds fails on both",
        ),
        (
            "cpu-build",
            "quickstart",
            "3 checks with different results (H07, E02, H08); no check fails",
        ),
        (
            "cpu-build",
            "python-3.11",
            (
                "1 difference between the environments: different packages are installed: "
                "packages.digest sha256:7431bfde4b54 -> "
            ),
        ),
        # Two cards are not one.
        (
            "l4",
            "l4-two",
            (
                "not the same: 1 difference between the environments: nvml.count 1 -> 2 (and 1 "
                "that depends on it); no check fails"
            ),
        ),
    ],
)
def test_the_first_sentence_is_true(one: str, other: str, said: str) -> None:
    assert said in summarize_comparison(compare_reports(kept(one), kept(other), (one, other)))


def test_what_fails_on_both_sides_is_told_with_both_reasons() -> None:
    shown = report_text.render_text(
        compare_reports(simulated("l4-ecc-errors"), simulated("l4-remap-failed"), ("a", "b")),
        color=False,
        width=200,
        everything=False,
    )
    faulty = "the card's memory is faulty: "
    assert (
        f"D05 GPU memory errors fails on both: {faulty}3 uncorrected errors since boot (a), "
        f"{faulty}rows could not be remapped (b)\n" in shown
    )


def test_the_end_of_a_comparison_counts_in_english() -> None:
    found = compare_reports(recorded("cpu-build"), recorded("shadowed-package"), ("a", "b"))
    end = report_text.render_text(found, color=False, width=200, everything=False).splitlines()[-1]
    assert end.startswith(
        "two specs: build and quickstart, 42 equal readings, 49 in only one report, "
    )
    assert end.endswith("1 minor difference not shown (--all shows them)")


@pytest.mark.parametrize(
    ("check", "expected", "observed", "said"),
    [
        ("H07", (2**30, 2**35), 25276502016, "the declared values, 1 GiB on a, 32 GiB on b"),
        (
            "T01",
            ({"flavour": "cpu"}, {"flavour": "cu130"}),
            {"cuda": None},
            "the declared values, flavour cpu on a, flavour cu130 on b",
        ),
    ],
)
def test_what_is_declared_is_told_as_a_person_writes_it(
    check: str, expected: tuple[Any, Any], observed: Any, said: str
) -> None:
    documents = [json.loads((RECORDED / "quickstart.json").read_bytes()) for _ in range(2)]
    for document, value, status in zip(documents, expected, ("pass", "fail"), strict=True):
        next(one for one in document["checks"] if one["id"] == check).update(
            expected=value, observed=observed, status=status
        )
    one, other = (Report(document) for document in documents)

    assert said in summarize_comparison(compare_reports(one, other, ("a", "b")))


def test_two_that_have_no_reading_in_common_are_not_called_the_same() -> None:
    empty = read_report(json.dumps(OLDEST | {"verdict": {"result": "error"}}).encode(), "a")

    found = compare_reports(empty, recorded("quickstart"), ("a", "b"))

    assert not found.is_same
    assert summarize_comparison(found).startswith(
        "a and b cannot be compared: they have no identity reading in common"
    )
    assert "CANNOT BE COMPARED" in report_html.render_page(found)


OLDEST = {
    "schema": "provision.report/1",
    "subject": {},
    "stages": [],
    "digests": {},
    "spec": {},
    "lock": {},
    "readings": [],
    "checks": [],
}


@pytest.mark.parametrize("name", ["quickstart", "numpy-abi"])
def test_a_report_of_another_minor_version_is_read_in_every_form(name: str) -> None:
    """One that lacks what was added since, and holds what will be: fields, a status, a class and a
    check that this version does not know.
    """
    checks = [
        {"id": "P02", "status": "fail"},
        {"id": "P01", "status": "later"},
        {"id": "Z99:x", "status": "fail", "told": {"by": 1}},
    ]
    readings = [
        {"key": "no.class", "value": 1},
        {"key": "later", "class": "later", "value": 2},
        {"key": "os.id", "class": "identity", "value": "debian"},
    ]
    other = OLDEST | {
        "verdict": {"result": "failed"},
        "checks": checks,
        "readings": readings,
        "added": {"later": [1]},
    }
    report = read_report(json.dumps(other).encode(), "other")

    assert "FAIL P02" in text.render_report(report, False, 80, False)
    assert "Z99:x" in html.render_report(report, "x")
    assert "P02" in junit.render_junit([report])
    for pair in ((report, recorded(name)), (recorded(name), report)):
        found = compare_reports(*pair, ("a", "b"))
        assert found.is_comparable
        assert "Z99:x" in report_text.render_text(found, False, 80, True)
        assert "P02" in report_text.render_markdown(found)
        assert "P02" in json.dumps(report_text.to_json(found))
        assert "Z99:x" in report_html.render_page(found)


def test_what_nvidia_smi_tells_is_the_same_card() -> None:
    found = compare_reports(simulated("l4"), simulated("l4-by-nvidia-smi"), ("a", "b"))

    assert [turn for turn in found.check_changes if turn.breaks] == []
    assert not {one.key for one in found.differences} & {
        "gpu.name",
        "gpu.compute_capability",
        "gpu.vram_bytes",
        "driver.version",
        "nvml.pci",
    }


def test_every_check_that_breaks_has_the_cause_that_was_put_there() -> None:
    found = compare_reports(recorded("quickstart"), recorded("numpy-abi"), ("a", "b"))

    broken = {
        turn.id: [cause.key for cause in turn.causes] for turn in found.check_changes if turn.breaks
    }
    assert broken.keys() == {"P02", "P04", "P06:datasets", "R01"}
    assert all(causes == ["package.pandas"] for causes in broken.values())
    assert next(
        turn for turn in found.check_changes if turn.id == "R01"
    ).followers  # what came after it was left out, and is told under it


def test_two_runs_of_one_environment_are_the_same() -> None:
    found = compare_reports(recorded("quickstart"), recorded("quickstart-again"), ("a", "b"))

    assert found.is_same
    assert not found.check_changes
    assert not found.differences
    assert found.equal_count > 60


@pytest.mark.parametrize("name", sorted(path.stem for path in RECORDED.glob("*.json")))
def test_a_report_does_not_differ_from_itself(name: str) -> None:
    found = compare_reports(recorded(name), recorded(name), ("a", "b"))

    assert (found.check_changes, found.differences, found.one_sided_keys) == ((), (), ())


def test_what_follows_is_told_under_what_it_follows_from() -> None:
    python = compare_reports(recorded("python-3.11"), recorded("python-3.12"), ("a", "b"))
    assert [(one.key, set(one.followers)) for one in python.differences] == [
        ("python.version", {"packages.files", "python.minor"})
    ]
    assert not python.is_same
    assert not python.check_changes

    instructions = compare_reports(
        recorded("quickstart"), recorded("other-instruction-set"), ("a", "b")
    )
    (only,) = instructions.differences
    assert only.key == "env.ATEN_CPU_CAPABILITY"
    assert {"torch.cpu_capability", "train.weights_sha", "resume.weights_sha"} <= set(
        only.followers
    )


def test_of_two_locks_the_number_of_packages_is_told_under_their_digest() -> None:
    found = compare_reports(recorded("cpu-build"), recorded("python-3.11"), ("a", "b"))

    assert {one.key: set(one.followers) for one in found.differences}["packages.digest"] == {
        "packages.count",
        "packages.files",
    }


def test_what_a_card_and_a_driver_tell_is_told_under_their_names() -> None:
    cards = compare_reports(simulated("l4"), simulated("t4"), ("a", "b"))
    assert [(one.key, set(one.followers)) for one in cards.differences] == [
        (
            "gpu.name",
            {
                "gpu.compute_capability",
                "gpu.vram_bytes",
                "nvml.names",
                "nvml.pci",
                "nvml.power_default_mw",
                "nvml.power_limit_mw",
                "nvml.total_bytes",
            },
        )
    ]

    drivers = compare_reports(simulated("l4"), simulated("l4-old-driver"), ("a", "b"))
    assert [(one.key, set(one.followers)) for one in drivers.differences] == [
        ("driver.version", {"driver.cuda", "driver.major"})
    ]


def test_a_power_limit_that_was_lowered_is_no_other_card() -> None:
    document = json.loads((SIMULATED / "l4.json").read_bytes())
    _set(document, "nvml.power_limit_mw", [50000])
    lowered = read_report(json.dumps(document).encode(), "b")

    assert [
        one.key for one in compare_reports(simulated("l4"), lowered, ("a", "b")).differences
    ] == ["nvml.power_limit_mw"]


def test_weights_that_differ_with_nothing_to_explain_it_are_told_before_surroundings() -> None:
    document = json.loads((RECORDED / "quickstart.json").read_bytes())
    _set(document, "train.weights_sha", "0" * 64)
    _set(document, "host.nofile", 7)

    found = compare_reports(recorded("quickstart"), Report(document), ("a", "b"))

    assert [one.key for one in found.differences] == ["train.weights_sha", "host.nofile"]
    assert found.is_same  # neither is of the identity


@pytest.mark.parametrize(("value", "differs"), [(1.019, False), (1.03, True)])
def test_losses_may_differ_by_two_percent(value: float, differs: bool) -> None:
    documents = [json.loads((RECORDED / "quickstart.json").read_bytes()) for _ in range(2)]
    for document, loss in zip(documents, (1.0, value), strict=True):
        _set(document, "train.loss_last", loss)

    one, other = (Report(document) for document in documents)

    assert bool(compare_reports(one, other, ("a", "b")).differences) is differs


def test_a_reading_of_one_side_only_is_no_difference() -> None:
    document = json.loads((RECORDED / "quickstart.json").read_bytes())
    document["readings"] = [one for one in document["readings"] if one["key"] != "torch.cuda"]

    found = compare_reports(recorded("quickstart"), Report(document), ("a", "b"))

    assert found.one_sided_keys == ("torch.cuda",)
    assert found.is_same


def test_the_terminal_shows_checks_with_their_fixes() -> None:
    for name in sorted(path.stem for path in RECORDED.glob("*.json")):
        shown = report_text.render_text(
            compare_reports(recorded("quickstart"), recorded(name), ("quickstart", name)),
            color=False,
            width=100,
            everything=False,
        )
        assert len(shown.splitlines()) <= 60, name
        assert max(map(len, shown.splitlines())) <= 100
        assert "..." not in shown


def test_on_a_narrow_terminal_what_matters_is_not_cut() -> None:
    shown = report_text.render_text(
        compare_reports(recorded("quickstart"), recorded("small-shm"), ("quickstart", "small-shm")),
        color=False,
        width=40,
        everything=False,
    )
    lines = shown.splitlines()
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 40
    assert "the decisive difference: host.shm 23.54 GiB -> 64 MiB" in " ".join(lines)
    assert "..." not in " ".join(lines[: lines.index("")])


WORDS = st.text(max_size=300) | st.integers(0, 20).map(
    lambda count: "a reason that goes on " * count
)
ROWS = st.lists(
    st.tuples(
        st.sampled_from(sorted({check.id for check in CHECKS})),
        st.sampled_from(["fail", "warn", "unknown", "skip"]),
        WORDS,
    ),
    max_size=40,
)
MOVED = st.dictionaries(
    st.sampled_from(
        [
            "os.id",
            "host.nofile",
            "env.X",
            "package.torch",
            "gpu.name",
            "driver.version",
            "host.shm_bytes",
        ]
    ),
    WORDS,
)


@settings(deadline=None)
@given(ROWS, MOVED, st.integers(20, 200))
def test_whatever_differs_is_shown_in_bounds(
    rows: list[tuple[str, str, str]], moved: dict[str, str], width: int
) -> None:
    unique = {id_: (status, words) for id_, status, words in rows}
    sides = []
    for calm in (True, False):
        checks = [
            {
                "id": id_,
                "title": words[:40],
                "status": "pass" if calm else s,
                "message": words,
                "fix": words,
            }
            for id_, (s, words) in unique.items()
        ]
        readings = [
            {"key": key, "value": words + str(calm), "class": "identity"}
            for key, words in moved.items()
        ]
        sides.append(Report({"checks": checks, "readings": readings, "lock": {}, "spec": {}}))
    found = compare_reports(*sides, ("colab", "workbench"))
    shown = report_text.render_text(found, color=False, width=width, everything=False).splitlines()
    assert max(map(display_width, shown)) <= max(40, width)
    more = [row for row in shown if row.startswith("(+")]
    assert bool(more) is (len(found.check_changes) + len(found.one_sided_failures) > 8)
    whole = report_text.render_text(found, color=False, width=200, everything=True)
    assert all(f"{turn.id} " in whole for turn in found.check_changes)


def test_foreign_text_in_a_report_is_made_harmless() -> None:
    document = json.loads((RECORDED / "small-shm.json").read_bytes())
    for check in document["checks"]:
        check["message"] = "\x1b]0;owned\x07 <script>alert(1)</script> | x"

    found = compare_reports(recorded("quickstart"), Report(document), ("a", "b\x1b[2J"))

    assert "\x1b" not in report_text.render_text(found, color=False, width=100, everything=True)
    assert "<script" not in report_text.render_markdown(found)
    assert "\x1b" not in report_text.render_markdown(found)


def test_the_command(tmp_path: Path) -> None:
    same = run(
        "diff",
        str(RECORDED / "quickstart.json"),
        str(RECORDED / "quickstart-again.json"),
        cwd=tmp_path,
    )
    assert (same.returncode, same.stderr) == (0, "")

    other = run(
        "diff",
        str(RECORDED / "quickstart.json"),
        str(RECORDED / "small-shm.json"),
        "--output-format",
        "json",
        cwd=tmp_path,
    )
    told = json.loads(other.stdout)
    assert (other.returncode, told["same"], told["checks"][0]["id"]) == (1, False, "H07")

    page = run(
        "diff",
        str(RECORDED / "quickstart.json"),
        str(RECORDED / "numpy-abi.json"),
        "--output-format",
        "markdown",
        cwd=tmp_path,
    )
    assert page.returncode == 1
    assert page.stdout.startswith("### quickstart and numpy\\-abi")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nothing.json", "other.json"), "cannot read nothing.json"),
        (("local", "there"), "local is not a report"),
        (("damaged.json", "damaged.json"), "damaged.json is damaged"),
        (("local", "other", "--spec", "provision.yaml"), "target `local`"),
        (("elsewhere", "local", "--spec", "provision.yaml"), "the spec has no target `elsewhere`"),
    ],
)
def test_bad_input(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    (tmp_path / "damaged.json").write_text("{")
    if "--spec" in words:
        (tmp_path / "provision.yaml").write_text(
            'apiVersion: provision/v1\nname: x\ngpu: none\npython: "3.11"\npackages: [numpy]\n'
        )

    done = run("diff", *words, cwd=tmp_path)

    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return fork_server.run(
        [*fork_server.ARGV, *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def _set(document: dict[str, Any], key: str, value: Any) -> None:
    next(one for one in document["readings"] if one["key"] == key)["value"] = value
