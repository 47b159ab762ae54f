"""The baseline: findings that a project had when it adopted `lint`, by their place in the YAML."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from provision.adapters import RealSystem
from provision.commands.lint_baseline import read_baseline
from provision.errors import UsageError
from tests.commands.test_lint_forms import BAD, FIXED, GOOD, lint, write

RELATIVE = "paths: {data: x/y}\n"
BASELINE = ("--baseline", "base.json")
ENTRY = (
    '{"schema": "provision.baseline/1", "findings": [{"file": "a", "document": "0", "place": "", '
    '"rule": %s, "count": %s}]}'
)


@pytest.fixture
def adopted(tmp_path: Path) -> Path:
    (tmp_path / "specs").mkdir()
    write(tmp_path / "specs", a=BAD, b=GOOD + RELATIVE)
    done = lint(tmp_path, "specs/a.yaml", "specs/b.yaml", *BASELINE, "--write-baseline")
    assert done.returncode == 0
    assert "wrote base.json: 2 findings" in done.stderr
    assert done.stdout == "No findings. 2 in the baseline.\n"
    return tmp_path


def test_the_file_names_files_rules_and_places(adopted: Path) -> None:
    document = json.loads((adopted / "base.json").read_text())
    assert document["schema"] == "provision.baseline/1"
    assert document["findings"] == [
        {
            "file": "specs/a.yaml",
            "rule": "PKG001",
            "document": "0",
            "place": "packages[transformers]",
            "count": 1,
        },
        {
            "file": "specs/b.yaml",
            "rule": "REF101",
            "document": "0",
            "place": "paths.data",
            "count": 1,
        },
    ]


@pytest.mark.parametrize(
    "text",
    [
        BAD,
        f"# a\n\n{BAD}",
        BAD.replace("[torch,", "[numpy, torch,"),
        BAD.replace("5.13.1", "5.13.0"),
    ],
)
def test_findings_keep_their_identity_while_lines_and_items_move(adopted: Path, text: str) -> None:
    (adopted / "specs/a.yaml").write_text(text)
    done = lint(adopted, "specs/a.yaml", *BASELINE)
    assert (done.returncode, done.stdout) == (0, "No findings. 1 in the baseline.\n")


def test_other_findings_are_reported(adopted: Path) -> None:
    (adopted / "specs/a.yaml").write_text(BAD + RELATIVE)
    done = lint(adopted, "specs", *BASELINE, "--output-format", "json")
    assert done.returncode == 1
    data = json.loads(done.stdout)
    assert [(item["id"], item["file"]) for item in data["diagnostics"]] == [
        ("REF101", "specs/a.yaml")
    ]
    assert {item["suppression"]["kind"] for item in data["suppressed"]} == {"baseline"}
    sarif = json.loads(lint(adopted, "specs", *BASELINE, "--output-format", "sarif").stdout)
    kinds = [item.get("suppressions", [{}])[0].get("kind") for item in sarif["runs"][0]["results"]]
    assert sorted(kinds, key=str) == [None, "external", "external"]


def test_the_folder_of_a_call_does_not_matter(adopted: Path) -> None:
    done = lint(adopted / "specs", "a.yaml", "--baseline", "../base.json")
    assert done.returncode == 0


def test_entries_without_a_finding_are_counted(adopted: Path) -> None:
    (adopted / "specs/a.yaml").write_text(FIXED)
    done = lint(adopted, "specs/a.yaml", *BASELINE)
    assert "base.json has 1 finding that no longer occur" in done.stderr
    assert "no longer" not in lint(adopted, "specs/b.yaml", *BASELINE).stderr


def test_text_that_cannot_be_read_is_never_in_a_baseline(tmp_path: Path) -> None:
    write(tmp_path, a="gpu: [\n")
    done = lint(tmp_path, "a.yaml", *BASELINE, "--write-baseline")
    assert done.returncode == 1
    assert json.loads((tmp_path / "base.json").read_text())["findings"] == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"schema": "provision.baseline/2", "findings": []}',
        '{"schema": "provision.baseline/1", "findings": [1]}',
        '{"schema": "provision.baseline/1", "findings": [{"file": "a"}]}',
        ENTRY % ("1", "1"),
        ENTRY % ('"b"', "true"),
        ENTRY % ('"b"', "0"),
        "[" * 100_000,
    ],
)
def test_a_damaged_baseline_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "base.json").write_text(text)
    with pytest.raises(UsageError, match="is not a baseline"):
        read_baseline(tmp_path / "base.json", RealSystem({}))


def test_options_that_do_not_fit_together(tmp_path: Path) -> None:
    write(tmp_path, a=BAD)
    assert lint(tmp_path, "a.yaml", "--write-baseline").returncode == 2
    missing = lint(tmp_path, "a.yaml", "--baseline", "gone.json")
    assert missing.returncode == 2
    assert "gone.json" in missing.stderr
