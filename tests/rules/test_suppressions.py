"""Comments that accept findings: which findings they cover, and what is reported about them."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from provision import kinds, target_facts
from provision.adapters import RealSystem
from provision.commands.shared.load import CheckedDocument, check_file
from provision.facts import load_facts
from provision.rules.suppressions import REFUSED_ANYWAY, is_ignorable
from provision.source import FINDING_KINDS
from tests.commands.test_lint_forms import BAD, lint

HEAD = 'gpu: none\npython: "3.11"\n'
TRAINER = "packages: [torch, transformers==5.13.1]"
"""PKG001: accelerate is missing."""
ACCEPT = "# provision: ignore[PKG001] the image has it"


def check(folder: Path, text: str, name: str = "spec.yaml") -> tuple[CheckedDocument, ...]:
    (folder / name).write_bytes(text.encode())
    return check_file(folder / name, RealSystem({}), load_facts())


def kept(document: CheckedDocument) -> list[str]:
    return [finding.id for finding in document.diagnostics]


def accepted(document: CheckedDocument) -> list[tuple[str, str]]:
    return [(item.finding.id, item.reason) for item in document.suppressed]


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD}{TRAINER} {ACCEPT}\n",
        f"{HEAD}{TRAINER} {ACCEPT}",
        f"{HEAD}{ACCEPT}\n{TRAINER}\n",
        f"{HEAD}{ACCEPT}\n# more words\n\n{TRAINER}\n",
        f"{HEAD}packages: {ACCEPT}\n- torch\n- transformers==5.13.1\n",
        f"{HEAD}packages:\n- torch\n- transformers==5.13.1 {ACCEPT}\n",
        f"{HEAD}packages:\n- torch\n{ACCEPT}\n- transformers==5.13.1\n",
        f"{HEAD}packages:\n- torch\n- name: transformers {ACCEPT}\n  version: ==5.13.1\n",
        f"{HEAD}packages: [torch, {ACCEPT}\n  transformers==5.13.1]\n",
        f"\ufeff{HEAD}{TRAINER} {ACCEPT}\n".replace("\n", "\r\n"),
        f"{HEAD}{TRAINER} #provision:ignore[ PKG001 ,]   the image has it  \n",
    ],
)
def test_a_comment_covers_its_line_or_the_next_node(tmp_path: Path, text: str) -> None:
    (document,) = check(tmp_path, text)
    assert (kept(document), accepted(document)) == ([], [("PKG001", "the image has it")])


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD}{TRAINER}\n{ACCEPT}\n",
        f"{ACCEPT}\ngpu: none\npython: '3.11'\n{TRAINER}\n",
        f"{HEAD}packages:\n- torch {ACCEPT}\n- transformers==5.13.1\n",
        f"{HEAD}{TRAINER}\nenv:\n  A: x {ACCEPT}\n",
    ],
)
def test_a_comment_elsewhere_accepts_nothing_and_is_unused(tmp_path: Path, text: str) -> None:
    (document,) = check(tmp_path, text)
    assert sorted(kept(document)) == ["PKG001", "SUP001"]
    assert document.suppressed == ()


@pytest.mark.parametrize(
    "value",
    [
        f'"{ACCEPT}"',
        f"'x {ACCEPT}'",
        f"|\n    {ACCEPT}\n    text",
        f">-\n    text {ACCEPT}",
        '"a\n    # provision: ignore[PKG001] b"',
        "x# provision:ignore[PKG001] y",
    ],
)
def test_text_in_a_value_is_not_a_comment(tmp_path: Path, value: str) -> None:
    (document,) = check(tmp_path, f"{HEAD}env:\n  A: {value}\n{TRAINER}\n")
    assert [rule for rule in kept(document) if rule.startswith(("PKG", "SUP"))] == ["PKG001"]


def test_the_line_that_opens_a_block_may_have_a_comment(tmp_path: Path) -> None:
    (document,) = check(tmp_path, f"{HEAD}env:\n  A: | {ACCEPT}\n    text\npackages: []\n")
    assert kept(document) == ["SUP001"]


@pytest.mark.parametrize(
    ("comment", "finding", "words"),
    [
        ("# provision: ignore[CUD001] x", "SUP001", "there is no CUD001 finding to ignore here"),
        ("# provision: ignore[PKG0001] x", "SUP002", "did you mean 'PKG001'"),
        ("# provision: ignore[pkg001] x", "SUP002", "did you mean 'PKG001'"),
        ("# provision: ignore[CUD001]", "SUP003", "no reason for ignoring CUD001"),
        ("# provision: ignore PKG001", "SUP004", "does not name a rule"),
        ("# provision: ignore[]", "SUP004", "does not name a rule"),
        ("# provision: ignore[SEC001] x", "SUP005", "findings of SEC001 cannot be ignored"),
        ("# provision: ignore[SPC001] x", "SUP005", "findings of SPC001 cannot be ignored"),
    ],
)
def test_what_is_wrong_with_a_comment_is_a_finding_at_it(
    tmp_path: Path, comment: str, finding: str, words: str
) -> None:
    (document,) = check(tmp_path, f"{HEAD}packages: []\n{comment}\n")
    (found,) = [item for item in document.diagnostics if item.id == finding]
    assert words in found.message + found.help
    assert document.source.span(found.where).start.line == 4


def test_every_kind_about_comments_is_tested_above() -> None:
    marks = test_what_is_wrong_with_a_comment_is_a_finding_at_it.pytestmark
    tested = {case[1] for mark in marks for case in mark.args[1]}
    assert tested == {kind.id for kind in FINDING_KINDS if kind.id.startswith("SUP")}


def test_a_secret_in_the_clear_is_reported_in_spite_of_a_comment(tmp_path: Path) -> None:
    token = "hf_" + "a1B2" * 8
    text = f"{HEAD}packages: []\nenv:\n  T: {token} # provision: ignore[SEC001] mine\n"
    (document,) = check(tmp_path, text)
    assert sorted(kept(document)) == ["SEC001", "SUP005"]


def test_what_plan_refuses_cannot_be_accepted() -> None:
    modules = [Path(target_facts.__file__), *Path(kinds.__file__).parent.glob("*.py")]
    refused = {
        keyword.value.value
        for path in modules
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "rule" and isinstance(keyword.value, ast.Constant) and keyword.value.value
    }
    assert "GCP021" in refused
    assert refused | {"SPC009", "GCP022"} == REFUSED_ANYWAY
    assert not any(map(is_ignorable, (*REFUSED_ANYWAY, "SEC001", "YML001", "BUG000")))
    assert all(map(is_ignorable, ("PKG001", "CST001", "YML014")))


def test_a_spec_with_wrong_shape_has_no_findings_about_comments(tmp_path: Path) -> None:
    (document,) = check(tmp_path, f"{HEAD}packages: []\nnope: 1 {ACCEPT}\n")
    assert kept(document) == ["SPC001"]


@pytest.mark.parametrize(("rule", "severity"), [("PKG026", "info"), ("CUD001", "warning")])
def test_a_rule_on_locks_may_have_its_finding_there(
    tmp_path: Path, rule: str, severity: str
) -> None:
    (document,) = check(tmp_path, f"{HEAD}packages: [] # provision: ignore[{rule}] x\n")
    (finding,) = document.diagnostics
    assert (finding.id, finding.severity, bool(finding.why)) == (
        "SUP001",
        severity,
        severity == "info",
    )


def test_each_document_has_its_comments(tmp_path: Path) -> None:
    text = f"{HEAD}{TRAINER} {ACCEPT}\n---\n{HEAD}{TRAINER}\n---\n{ACCEPT}\n{HEAD}packages: []\n"
    first, second, third = check(tmp_path, text)
    assert (kept(first), accepted(first)) == ([], [("PKG001", "the image has it")])
    assert (kept(second), second.suppressed) == (["PKG001"], ())
    assert (kept(third), third.suppressed) == (["SUP001"], ())


def test_a_comment_in_an_extended_file_covers_the_findings_there(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "base.yaml").write_text(f"{TRAINER} {ACCEPT}\ncuda: none # {ACCEPT[2:]}\n")
    (document,) = check(tmp_path, f"extends: base.yaml\n{HEAD}")
    assert (kept(document), accepted(document)) == ([], [("PKG001", "the image has it")])


def test_accepted_findings_are_counted_and_in_json_and_sarif(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(BAD)
    (tmp_path / "b.yaml").write_text(f"{HEAD}{TRAINER} {ACCEPT}\n")
    text = lint(tmp_path, "a.yaml", "b.yaml")
    assert text.returncode == 1
    assert text.stdout.splitlines()[-1].startswith("Found 1 error.")
    assert text.stdout.rstrip().endswith("1 accepted by comments.")
    data = json.loads(lint(tmp_path, "a.yaml", "b.yaml", "--output-format", "json").stdout)
    assert (data["summary"]["error"], data["summary"]["suppressed"]) == (1, 1)
    (item,) = data["suppressed"]
    assert (item["id"], item["file"]) == ("PKG001", "b.yaml")
    assert item["suppression"]["kind"] == "comment"
    assert item["suppression"]["reason"] == "the image has it"
    assert item["suppression"]["range"]["start"]["line"] == 3
    done = lint(tmp_path, "b.yaml", "--output-format", "sarif")
    assert done.returncode == 0
    (run,) = json.loads(done.stdout)["runs"]
    (result,) = run["results"]
    (suppression,) = result["suppressions"]
    assert (suppression["kind"], suppression["justification"]) == ("inSource", "the image has it")
    region = suppression["location"]["physicalLocation"]["region"]
    assert (region["startLine"], region["startColumn"]) == (3, len(TRAINER) + 2)


def test_other_formats_leave_accepted_findings_out(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(f"{HEAD}{TRAINER} {ACCEPT}\n")
    for form in ("concise", "github"):
        done = lint(tmp_path, "b.yaml", "--output-format", form)
        assert (done.returncode, done.stdout.strip()) == (0, "")


def test_many_comments_take_linear_time(tmp_path: Path) -> None:
    lines = "".join(f"  A{number}: x # provision: ignore[ENV001] y\n" for number in range(2000))
    (document,) = check(tmp_path, f"{HEAD}packages: []\nenv:\n{lines}")
    assert len(re.findall("SUP001", " ".join(kept(document)))) == 2000
