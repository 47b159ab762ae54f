"""A verification in a terminal: the verdict first, failures with their fixes, nothing that steers
the terminal.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from provision.verification import read_report
from provision.views.formatting import display_width, wrap
from provision.views.report.text import MAX_IN_FULL, MAX_LISTED
from tests.views.builders import (
    agree,
    check,
    crowded,
    failed,
    hostile,
    render_page,
    render_suites,
    render_text,
    sample,
    stage,
    threshold,
    verified,
)

RECORDED = Path(__file__).parents[1] / "reports" / "recorded"
PATH = ".provision/reports/here/report.json"
OURS = re.compile(r"\x1b\[[0-9;]*m")
RAW_CONTROL = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)


@pytest.mark.parametrize(
    ("name", "document", "color", "width", "verbose"),
    [
        ("report-verified.txt", verified(), False, 80, False),
        ("report-failed.txt", failed(), False, 80, False),
        ("report-failed-color.txt", failed(), True, 100, False),
        ("report-failed-verbose.txt", failed(), False, 80, True),
        ("report-crowded.txt", crowded(), False, 80, False),
        ("report-hostile.txt", hostile(), False, 80, False),
    ],
)
def test_golden(
    name: str, document: dict[str, Any], color: bool, width: int, verbose: bool
) -> None:
    agree(name, render_text(document, color, width, verbose, PATH))


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 200])
@pytest.mark.parametrize(
    "document", [verified(), failed(), crowded(), crowded(1), crowded(2), crowded(400), hostile()]
)
def test_no_row_is_wider_than_the_terminal(document: dict[str, Any], width: int) -> None:
    rows = render_text(document, False, width, False, PATH).splitlines()
    assert max(display_width(row) for row in rows if not row.startswith("report ")) <= max(
        40, width
    )


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_no_word_is_broken(width: int) -> None:
    document = read_report((RECORDED / "shadowed-package.json").read_bytes(), "").document
    words = {word.strip(",") for word in render_text(document, False, 10_000, False, PATH).split()}
    shown = render_text(document, False, width, False, PATH).split()
    assert {word.strip(",") for word in shown} <= words


def test_a_long_path_is_broken_behind_a_separator() -> None:
    path = "/data/" + "a-folder-with-a-name/" * 8 + "model.safetensors"
    one = check(
        "W01", "paths", "declared paths", "fail", message=f"{path} is missing", fix="make it"
    )
    rows = render_text(sample("failed", [one]), False, 80, False).splitlines()
    parts = [row.strip().removeprefix("why").strip() for row in rows if "folder-with" in row]
    assert len(parts) == 3
    assert "".join(parts).startswith(path[:150])
    assert all(part[-1] in "/-" for part in parts[:-1])


def test_on_a_narrow_terminal_no_count_of_the_verdict_is_cut() -> None:
    head = render_text(failed(), False, 40, False, PATH).split("\n\n")[0]
    whole = render_text(failed(), False, 100, False, PATH).splitlines()[0]
    assert " ".join(head.split()).startswith(" ".join(whole.split()))


def test_an_error_is_not_told_against_no_exception_and_not_twice() -> None:
    document = read_report((RECORDED / "shadowed-package.json").read_bytes(), "").document
    raised = "import torch raised ImportError: not numpy (__init__.py:1 in <module>)"
    checks = [one for one in document["checks"] if one["id"] in ("P06:torch", "P06:safetensors")]
    alone = {**document, "checks": checks}
    text = render_text(alone, False, 200, False)
    assert text.count("ImportError: not numpy") == 1
    assert f"FAIL P06:torch import torch\n  why       {raised}\n" in text
    for shown in (
        text,
        render_text(alone, False, 200, True),
        render_page(alone, "x").partition("<pre")[0],
        render_suites([alone]),
    ):
        assert raised in shown.replace("&lt;", "<").replace("&gt;", ">")
        assert "no exception" not in shown


@pytest.mark.parametrize(
    ("problems", "remarks"), [(p, r) for p in (0, 1, 6, 7, 30) for r in (0, 1, 30)]
)
def test_every_failure_that_is_shown_has_its_fix(problems: int, remarks: int) -> None:
    document = sample("failed", [*_many("F", "fail", problems), *_many("W", "warn", remarks)])
    text = render_text(document, False, 80, False, PATH)
    shown = len(re.findall(r"^(?:FAIL F|warn W)\d", text, re.MULTILINE))
    more = re.search(r"\(\+(\d+) more, -v shows all\)", text)
    assert shown == min(problems + remarks, MAX_LISTED)
    assert shown + (int(more[1]) if more else 0) == problems + remarks
    assert len(re.findall(r"^  fix       change \d+$", text, re.MULTILINE)) == shown
    assert text.count("  expected  this\n  found     that\n") == min(problems, MAX_IN_FULL)


def test_checks_with_one_message_share_a_row() -> None:
    checks = [
        check(f"R0{n}", "training", f"title {n}", "unknown", message="not observed: R01 failed")
        for n in (2, 3, 4)
    ]
    text = render_text(sample("unverified", checks), False, 80, False)
    assert "UNKNOWN R02 title 2, R03 title 3, R04 title 4: not observed: R01 failed\n" in text


def test_checks_that_do_not_apply_take_one_row() -> None:
    skipped = [check(f"D{n:02}", "device", "t", "skip", message="no GPU") for n in range(11)]
    document = sample("verified", [check("H01", "host", "t"), *skipped])
    for verbose in (False, True):
        text = render_text(document, False, 80, verbose, PATH)
        assert "VERIFIED  1 check passed, 11 not applicable (no GPU), in 37 s\n" in text
        assert "  11 device checks not applicable: no GPU\n" in text
        assert "D01" not in text


def test_the_proof_is_whole() -> None:
    checks = [check(f"R{n}", "training", f"a training check with a title {n}") for n in range(9)]
    text = render_text(sample("verified", checks), False, 60, False, PATH)
    assert all(f"title {n}" in " ".join(text.split()) for n in range(9))
    assert "..." not in text


def test_verbose_shows_every_check_and_every_fix() -> None:
    document = crowded(30)
    text = render_text(document, False, 80, True, PATH)
    assert all(f"FAIL {one['id']} " in text for one in document["checks"])
    assert "more, -v" not in text


@pytest.mark.parametrize(
    ("result", "word"),
    [
        ("verified", "VERIFIED"),
        ("failed", "NOT AS DECLARED"),
        ("unverified", "UNVERIFIED"),
        ("error", "ERROR"),
        ("simulated", "SIMULATED"),
        ("??", "ERROR"),
    ],
)
def test_headline(result: str, word: str) -> None:
    assert render_text(sample(result, []), False, 80, False, PATH).splitlines()[0] == word


def test_failure_reads_declared_found_why_fix() -> None:
    text = render_text(failed(), False, 100, False, PATH)
    assert text.startswith(
        "NOT AS DECLARED  2 checks failed, 17 passed, 1 unknown, 1 with warnings, "
        "1 not applicable, in 37 s\n"
    )
    rows = [
        row.split()[0]
        for row in text[text.index("FAIL P02") : text.index("FAIL T02")].splitlines()
        if row
    ]
    assert rows == ["FAIL", "expected", "found", "why", "fix"]
    assert text.splitlines()[-1] == f"report {PATH}  identity sha256:e0d009f66ba6"


def test_the_first_cause_leads() -> None:
    document = sample("failed", [check("A1", "g", "t", "fail"), check("B1", "g", "t", "fail")])
    document["verdict"]["first_cause"] = "B1"
    text = render_text(document, False, 80, False, PATH)
    assert text.index("FAIL B1") < text.index("FAIL A1")


def test_only_a_verified_report_with_training_claims_a_proof() -> None:
    claim = "proof: a Hugging Face Trainer run on this machine"
    assert claim in render_text(verified(), False, 80, False, PATH)
    assert claim not in render_text(failed(), False, 80, False, PATH)
    without = verified()
    without["checks"] = [one for one in without["checks"] if one["group"] != "training"]
    assert "proof: none (imports only; no training was run)" in render_text(
        without, False, 80, False, PATH
    )


@pytest.mark.parametrize(
    ("failing", "words"),
    [
        (("Y01",), "but Y01 did not"),
        (("Y01", "V02"), "but Y01 and V02 did not"),
        (("Y01", "V02", "E02", "W01", "N02"), "but Y01, V02, E02 and 2 more did not"),
    ],
)
def test_training_that_passed_in_a_failed_report_is_named(
    failing: tuple[str, ...], words: str
) -> None:
    document = verified()
    document["checks"] += [check(name, "job", name, "fail", required=True) for name in failing]
    document["verdict"] = {**document["verdict"], "result": "failed", "first_cause": failing[0]}
    assert f"proof: none: the training passed, {words}" in render_text(
        document, False, 80, False, PATH
    )
    (row,) = (row for row in document["checks"] if row["id"] == "R02")
    row["status"] = "fail"
    assert "proof: none (required: a Hugging Face Trainer run)" in render_text(
        document, False, 80, False, PATH
    )


def test_the_declared_command_is_the_proof_if_no_training_check_ran() -> None:
    document = verified()
    document["checks"] = [one for one in document["checks"] if one["group"] != "training"]
    document["checks"].append(check("V02", "job", "the project's command", "pass"))
    text = render_text(document, False, 80, False, PATH)
    assert "proof: `verify.command` passed (no training check was run)" in text


def test_simulated_parts_are_named() -> None:
    document = verified()
    document["subject"]["simulated"] = ["gpu"]
    assert "simulated, not a real device: gpu" in render_text(document, False, 80, False, PATH)


def test_unknown_checks_are_listed() -> None:
    one = check("T03", "torch", "arch", "unknown", message="not observed", required=True)
    text = render_text(
        sample("unverified", [one, {**one, "id": "H09", "required": False}]), False, 80, False, PATH
    )
    assert "UNKNOWN T03 arch, H09 arch: not observed\n" in text


def test_a_stage_that_died_shows_its_last_output_with_v() -> None:
    document = sample(
        "failed",
        [],
        stages=[
            stage("loaders", 2.0, exit=None, signal="SIGBUS", tail="worker 1\nbus error"),
            stage("host", 0.1),
        ],
    )
    text = render_text(document, False, 80, True, PATH)
    assert "ended by SIGBUS" in text
    assert "    bus error\n" in text


def test_secrets_are_redacted() -> None:
    token = "hf_" + "Zq3" * 10
    document = sample(
        "failed",
        [
            check(
                "P06",
                "g",
                "t",
                "fail",
                observed=f"https://u:{token}@h",
                message=token,
                cause=token,
                fix=token,
            )
        ],
    )
    for verbose in (False, True):
        assert "Zq3" not in render_text(document, False, 80, verbose, PATH)


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("color", [False, True])
def test_foreign_text_cannot_steer_the_terminal(color: bool, verbose: bool) -> None:
    text = render_text(hostile(), color, 80, verbose, "\x1b]0;x\x07")
    assert RAW_CONTROL.search(OURS.sub("", text)) is None
    assert "\\x1b[2J" in text
    assert color or "\x1b" not in text


TEXT = st.text(max_size=12)
LEAF = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
JSON = LEAF | st.lists(LEAF, max_size=2) | st.dictionaries(TEXT, LEAF, max_size=2)
CHECKS = st.lists(
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(
            (
                "id",
                "group",
                "title",
                "status",
                "required",
                "expected",
                "observed",
                "threshold",
                "message",
                "cause",
            ),
            JSON,
        ),
    ),
    max_size=4,
)


@given(
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(
            ("subject", "spec", "verdict", "digests", "packages", "stages", "tier"), JSON
        ),
    ),
    CHECKS,
    st.integers(1, 120),
)
def test_any_document_is_shown(document: dict[str, Any], checks: list[Any], width: int) -> None:
    text = render_text({**document, "checks": checks}, False, width, False, "report.json")
    assert RAW_CONTROL.search(text) is None


def test_bytes_are_told_in_powers_of_1024() -> None:
    document = sample(
        "failed",
        [
            check(
                "H05",
                "host",
                "memory",
                "fail",
                expected=2**34,
                observed=3 * 2**29,
                threshold=threshold(2**34, "bytes"),
            )
        ],
    )
    text = render_text(document, False, 80, False, PATH)
    assert "expected  16 GiB\n" in text
    assert "found     1.5 GiB\n" in text


def _many(letter: str, status: str, count: int) -> list[dict[str, Any]]:
    texts = {"expected": "this", "observed": "that", "message": "it is that", "cause": "because"}
    return [
        check(f"{letter}{n}", f"group{n % 5}", "title", status, **texts, fix=f"change {n}")
        for n in range(count)
    ]


WORDS = (
    st.text(max_size=400)
    | st.integers(0, 30).map(lambda count: "a reason that goes on " * count)
    | st.just("")
)
FAILURES = st.lists(
    st.builds(
        lambda n, group, status, required, texts: check(
            f"X{n}",
            f"group {group}",
            texts[0],
            status,
            required=required,
            **dict(zip(("expected", "observed", "message", "cause", "fix"), texts, strict=True)),
        ),
        st.integers(0, 99),
        st.integers(0, 20),
        st.sampled_from(["fail", "fail", "unknown", "warn", "pass", "skip"]),
        st.booleans(),
        st.lists(WORDS, min_size=5, max_size=5),
    ),
    max_size=60,
)


@settings(deadline=None)
@given(
    FAILURES,
    st.integers(20, 200),
    st.sampled_from(["failed", "unverified", "error", "simulated"]),
    st.lists(st.text(max_size=99), max_size=5),
    WORDS,
)
def test_a_report_of_many_failures(
    checks: list[Any], width: int, result: str, simulated: list[str], sentence: str
) -> None:
    document = sample(result, checks)
    document["verdict"]["sentence"] = sentence
    document["subject"]["simulated"] = simulated
    rows = render_text(document, False, width, False, PATH).splitlines()
    wide = max(40, width)
    assert max(display_width(row) for row in rows if not row.startswith("report ")) <= wide
    wrong = sum(one["status"] in ("fail", "unknown", "warn") for one in checks)
    more = re.search(r"\(\+(\d+) more, -v shows all\)", "\n".join(rows))
    assert (int(more[1]) if more else 0) == max(0, wrong - MAX_LISTED)
    verbose = render_text(document, False, width, True, PATH)
    assert all(one["id"] in verbose for one in checks if one["status"] != "skip")


@pytest.mark.parametrize(
    ("text", "width", "rows"),
    [
        ("4 checks failed, in 8.7 s", 23, ["4 checks failed, in", "8.7 s"]),
        ("uses (12.7 GiB), 5 sheep", 13, ["uses", "(12.7 GiB), 5", "sheep"]),
        ("7 seconds", 2, ["7", "se", "co", "nd", "s"]),
        ("7 s", 1, ["7", "s"]),
    ],
)
def test_a_number_keeps_its_unit(text: str, width: int, rows: list[str]) -> None:
    assert wrap(text, width) == rows
