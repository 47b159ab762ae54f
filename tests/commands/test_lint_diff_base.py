"""Pull requests as git repositories: what a change adds is told apart from what it moves, fixes,
and accepts.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from jsonschema import Draft4Validator, Draft7Validator

from provision.adapters import RealSystem
from provision.adapters.git_revision import open_revision
from provision.commands.lint import LintResult
from provision.commands.lint import lint as run_lint
from provision.commands.lint_options import LintOptions
from provision.errors import UsageError
from tests.commands.test_lint_forms import BAD, FIXED, GOOD, lint
from tests.npm_tools import validate_sarif

TRAINER = "packages: [torch, transformers==5.13.1]\n"
HEAD = 'gpu: none\npython: "3.11"\n'
RELATIVE = "paths: {data: x/y}\n"
"""REF101."""
ACCEPTED = TRAINER.rstrip() + " # provision: ignore[PKG001] the image has it\n"


@dataclass(frozen=True)
class Repository:
    """A repository with a branch `main` and a branch for a pull request."""

    folder: Path

    def git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words],
            cwd=self.folder,
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"},
        )
        return done.stdout.strip()

    def write(self, files: dict[str, str | None]) -> None:
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                path.unlink()
            else:
                path.write_text(text)

    def commit(self, files: dict[str, str | None]) -> None:
        self.write(files)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "x")

    def lint(self, *names: str, base: str = "main") -> LintResult:
        revision = open_revision(self.folder, base, dict(os.environ), common=True)
        try:
            paths = tuple(self.folder / name for name in names)
            return run_lint(paths, RealSystem({}), lambda _: None, LintOptions(base=revision))
        finally:
            revision.close()


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "repository")
    made.folder.mkdir()
    made.git("init", "--quiet", "--initial-branch", "main")
    return made


def pull_request(
    repository: Repository, before: dict[str, str], after: dict[str, str | None]
) -> None:
    repository.commit(dict(before))
    repository.git("checkout", "--quiet", "-b", "change")
    repository.commit(after)


def told(result: LintResult) -> dict[str, list[str]]:
    """The ids of the findings that are new, that were there before, accepted, and fixed."""
    groups: dict[str, list[str]] = {"new": [], "base": [], "comment": [], "fixed": []}
    for document in result.documents:
        groups["new"] += [item.id for item in document.diagnostics]
        for accepted in document.suppressed:
            groups[accepted.kind.value].append(accepted.finding.id)
    groups["fixed"] = [item.finding.id for item in result.fixed or ()]
    return {name: ids for name, ids in groups.items() if ids}


GOLDEN: dict[str, tuple[str, str, dict[str, list[str]]]] = {
    "unchanged": (BAD, BAD, {"base": ["PKG001"]}),
    "new": (BAD, BAD + RELATIVE, {"new": ["REF101"], "base": ["PKG001"]}),
    "fixed": (BAD + RELATIVE, FIXED + RELATIVE, {"base": ["REF101"], "fixed": ["PKG001"]}),
    "moved down": (BAD, f"# a\n\n# b\n{BAD}", {"base": ["PKG001"]}),
    "moved in the file": (HEAD + TRAINER, TRAINER + HEAD, {"base": ["PKG001"]}),
    "another item first": (
        HEAD + TRAINER,
        HEAD + "packages: [numpy, torch, transformers==5.13.1]\n",
        {"base": ["PKG001"]},
    ),
    "accepted by the change": (
        HEAD + TRAINER,
        HEAD + ACCEPTED,
        {"comment": ["PKG001"], "fixed": ["PKG001"]},
    ),
    "accepted before": (HEAD + ACCEPTED, HEAD + ACCEPTED + "\n", {"comment": ["PKG001"]}),
    "no longer accepted": (HEAD + ACCEPTED, HEAD + TRAINER, {"new": ["PKG001"]}),
    "edited and still wrong": (
        GOOD + RELATIVE,
        GOOD + "paths: {data: z}\n",
        {"new": ["REF101"], "fixed": ["REF101"]},
    ),
    "one more of a kind": (
        GOOD + RELATIVE,
        GOOD + "paths: {data: x/y, more: x/y}\n",
        {"new": ["REF101"], "base": ["REF101"]},
    ),
    "broken": (BAD, "gpu: [\n", {"new": ["YML001"], "fixed": ["PKG001"]}),
    "repaired": ("gpu: [\n", BAD, {"new": ["PKG001"], "fixed": ["YML001"]}),
    "not valid before and after": (
        GOOD + "bogus: 1\n",
        BAD + "bogus: 1\n",
        {"new": ["SPC001"]},
    ),
    "not valid and unchanged": (BAD + "bogus: 1\n", BAD + "bogus: 1\n", {"base": ["SPC001"]}),
    "a second document": (
        BAD,
        f"{BAD}---\n{BAD}",
        {"new": ["PKG001"], "base": ["PKG001"]},
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_pull_requests(repository: Repository, name: str) -> None:
    before, after, expected = GOLDEN[name]
    pull_request(repository, {"spec.yaml": before}, {"spec.yaml": after})
    result = repository.lint("spec.yaml")
    assert told(result) == expected
    assert result.exit_code == int("new" in expected)


def test_an_error_that_hides_the_findings_of_the_change_is_reported(repository: Repository) -> None:
    pull_request(repository, {"spec.yaml": GOOD + "bogus: 1\n"}, {"spec.yaml": BAD + "bogus: 1\n"})
    done = lint(repository.folder, "spec.yaml", "--diff-base", "main")
    assert done.returncode == 1
    said = " ".join(done.stdout.split())
    assert "error[SPC001]" in said
    assert "the rules did not run because of this error" in said
    assert said.endswith("Found 1 error.")
    for form in ("json", "sarif"):
        done = lint(repository.folder, "spec.yaml", "--diff-base", "main", "--output-format", form)
        assert (done.returncode, "the rules did not run" in done.stdout) == (1, True)


def test_files_that_are_new_renamed_and_extended(repository: Repository) -> None:
    before = {"old.yaml": BAD + "env: {A: x}\n", "base.yaml": TRAINER, "e.yaml": GOOD}
    after = {
        "old.yaml": None,
        "moved/renamed.yaml": BAD + "env: {A: y}\n",
        "base.yaml": TRAINER + RELATIVE,
        "e.yaml": f"extends: base.yaml\n{HEAD}",
        "new.yaml": BAD.replace("none", "none # x") + RELATIVE,
    }
    pull_request(repository, before, after)
    assert told(repository.lint("moved/renamed.yaml")) == {"base": ["PKG001"]}
    assert Counter(told(repository.lint("e.yaml"))["new"]) == Counter(["PKG001", "REF101"])
    assert told(repository.lint("new.yaml")) == {"new": ["REF101"], "base": ["PKG001"]}


def test_an_extended_file_changes_findings_of_a_spec_that_did_not(repository: Repository) -> None:
    spec = f"extends: base.yaml\n{HEAD}"
    before = {"base.yaml": "packages: []\n", "spec.yaml": spec}
    pull_request(repository, before, {"base.yaml": TRAINER})
    assert told(repository.lint("spec.yaml")) == {"new": ["PKG001"]}


def test_a_configuration_of_the_change_does_not_hide_what_it_adds(repository: Repository) -> None:
    lowered = '[lint.severity]\nPKG001 = "warning"\n'
    pull_request(repository, {"spec.yaml": BAD}, {"provision.toml": lowered})
    (document,) = repository.lint("spec.yaml").documents
    assert [item.finding.severity for item in document.suppressed] == ["warning"]


def test_the_common_commit_is_compared_not_the_tip(repository: Repository) -> None:
    pull_request(repository, {"spec.yaml": GOOD}, {"spec.yaml": BAD})
    repository.git("checkout", "--quiet", "main")
    repository.commit({"spec.yaml": BAD, "other.yaml": GOOD})
    repository.git("checkout", "--quiet", "change")
    assert told(repository.lint("spec.yaml")) == {"new": ["PKG001"]}


def test_changes_that_are_not_committed_count(repository: Repository) -> None:
    repository.commit({"spec.yaml": GOOD})
    repository.write({"spec.yaml": BAD})
    assert told(repository.lint("spec.yaml", base="HEAD")) == {"new": ["PKG001"]}


@pytest.mark.parametrize(
    "name", ["a\nb.yaml", "::error::c.yaml", "d\te.yaml", "é ü.yaml", "-x.yaml"]
)
def test_hostile_names(repository: Repository, name: str) -> None:
    pull_request(repository, {name: BAD}, {name: BAD + RELATIVE})
    assert told(repository.lint(name)) == {"new": ["REF101"], "base": ["PKG001"]}


def test_links_are_followed_inside_the_tree(repository: Repository) -> None:
    repository.commit({"real/spec.yaml": BAD})
    (repository.folder / "link.yaml").symlink_to("real/spec.yaml")
    (repository.folder / "out.yaml").symlink_to("../../outside.yaml")
    repository.commit({})
    revision = open_revision(repository.folder, "HEAD", dict(os.environ), common=False)
    try:
        assert revision.read(repository.folder / "link.yaml", 999) == BAD.encode()
        assert not revision.exists(repository.folder / "out.yaml")
    finally:
        revision.close()


def test_unknown_references_are_named(repository: Repository) -> None:
    repository.commit({"spec.yaml": GOOD})
    for reference in ("nowhere", "--output=pwned", "main:spec.yaml", "", "main\nHEAD"):
        with pytest.raises(UsageError, match="there is no commit") as caught:
            repository.lint("spec.yaml", base=reference)
        assert "use a branch" in caught.value.hint
    assert not (repository.folder / "pwned").exists()


def test_a_shallow_clone_is_named(repository: Repository, tmp_path: Path) -> None:
    pull_request(repository, {"spec.yaml": GOOD}, {"spec.yaml": BAD})
    repository.git("checkout", "--quiet", "main")
    repository.commit({"other.yaml": GOOD})
    repository.git("checkout", "--quiet", "change")
    clone = Repository(tmp_path / "clone")
    repository.git(
        *("clone", "--quiet", "--depth", "1", "--branch", "change"),
        *(f"file://{repository.folder}", str(clone.folder)),
    )
    with pytest.raises(UsageError, match="there is no commit origin/main") as caught:
        clone.lint("spec.yaml", base="origin/main")
    assert "fetch-depth: 0" in caught.value.hint
    clone.git("fetch", "--quiet", "--depth", "1", "origin", "main:refs/remotes/origin/main")
    with pytest.raises(UsageError, match="cannot be compared") as caught:
        clone.lint("spec.yaml", base="origin/main")
    assert "git fetch --unshallow" in caught.value.hint


def test_a_folder_without_a_repository_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not in a git repository"):
        open_revision(tmp_path, "HEAD", dict(os.environ), common=True)


def test_git_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="git is not installed"):
        open_revision(tmp_path, "HEAD", {"PATH": str(tmp_path)}, common=True)


def test_nothing_of_the_checkout_is_run(repository: Repository) -> None:
    """Filters, hooks, monitors and a folder that looks like a repository, each of which would leave
    a trace.
    """
    trace = repository.folder.parent / "trace"
    program = repository.folder / "evil.sh"
    attributes = "*.yaml filter=evil diff=evil\n"
    before = {
        "spec.yaml": BAD,
        ".gitattributes": attributes,
        "evil.sh": f"#!/bin/sh\ntouch {trace}\n",
    }
    pull_request(repository, before, {"spec.yaml": BAD + RELATIVE})
    program.chmod(0o755)
    for name in ("filter.evil.smudge", "filter.evil.clean", "diff.evil.textconv", "core.fsmonitor"):
        repository.git("config", name, str(program))
    for hook in ("post-checkout", "post-index-change", "pre-commit"):
        path = repository.folder / ".git/hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.symlink_to(program)
    trace.unlink(missing_ok=True)
    assert told(repository.lint("spec.yaml")) == {"new": ["REF101"], "base": ["PKG001"]}
    assert not trace.exists()
    repository.git("status")
    assert trace.exists(), "the trap works"


def test_text_json_and_sarif(repository: Repository) -> None:
    pull_request(
        repository, {"spec.yaml": BAD + "env: {RANK: '0'}\n"}, {"spec.yaml": BAD + RELATIVE}
    )
    words = ("spec.yaml", "--diff-base", "main")
    text = lint(repository.folder, *words)
    assert text.returncode == 1
    assert text.stdout.splitlines()[-1] == "Found 1 new error. 1 not from this change. 1 fixed."
    data = json.loads(lint(repository.folder, *words, "--output-format", "json").stdout)
    assert [item["id"] for item in data["diagnostics"]] == ["REF101"]
    assert [(item["id"], item["suppression"]["kind"]) for item in data["suppressed"]] == [
        ("PKG001", "base")
    ]
    assert [item["id"] for item in data["fixed"]] == ["ENV001"]
    sarif = json.loads(lint(repository.folder, *words, "--output-format", "sarif").stdout)
    (run,) = sarif["runs"]
    assert {item["ruleId"]: item["baselineState"] for item in run["results"]} == {
        "REF101": "new",
        "PKG001": "unchanged",
    }
    schemas = Path(__file__).parents[1] / "schemas"
    for name, validator in (("oasis", Draft4Validator), ("schemastore", Draft7Validator)):
        schema = json.loads((schemas / f"sarif-2.1.0.{name}.json").read_text(encoding="utf-8"))
        assert list(validator(schema).iter_errors(sarif)) == []
    refused = lint(repository.folder, "spec.yaml", "--diff-base", "nowhere")
    assert (refused.returncode, refused.stdout) == (2, "")


@pytest.mark.npm
def test_microsofts_multitool_accepts_the_sarif_file(repository: Repository) -> None:
    """Its one warning is about an address of the tool, which it does not have."""
    pull_request(
        repository,
        {"spec.yaml": BAD, "other.yaml": HEAD + ACCEPTED},
        {"spec.yaml": BAD + RELATIVE, "other.yaml": HEAD + ACCEPTED + "env: {RANK: '0'}\n"},
    )
    words = ("spec.yaml", "other.yaml", "--diff-base", "main", "--output-format", "sarif")
    sarif = repository.folder / "lint.sarif"
    sarif.write_text(lint(repository.folder, *words).stdout)
    broken = repository.folder / "broken.sarif"
    document = json.loads(sarif.read_text())
    result = document["runs"][0]["results"][0]
    result["locations"][0]["physicalLocation"]["region"]["endColumn"] = 1
    broken.write_text(json.dumps(document))
    found = validate_sarif([sarif, broken])
    assert {line.split()[2] for line in found if sarif.name in line} == {"SARIF2005:"}
    assert any(": error " in line for line in found if broken.name in line)


CLOUD = """\
gpu: L4
python: "3.12"
packages: [torch==2.11.0, transformers]
targets:
  here: {kind: local, gpu: none}
  wb:
    kind: workbench
    project: my-project
    zones: [us-central1-a]
    machine_type: g2-standard-8
    data_disk: {size: 200GiB}
    nat: true
    idle_shutdown: 1h
    max_lifetime: 8h
"""
LARGER = CLOUD.replace("g2-standard-8", "g2-standard-12").replace("200GiB", "100GiB")


def test_the_summary_has_prices_and_what_would_be_replaced(repository: Repository) -> None:
    pull_request(
        repository,
        {"a.yaml": CLOUD, "b.yaml": CLOUD, "c.yaml": "gpu: ["},
        {"a.yaml": LARGER, "c.yaml": CLOUD, "d.yaml": LARGER, "e.yaml": "gpu: ["},
    )
    words = ("a.yaml", "b.yaml", "c.yaml", "d.yaml", "e.yaml", "--diff-base", "main")
    text = lint(repository.folder, *words, "--output-format", "markdown").stdout
    table = [line for line in text.splitlines() if line.startswith("| ")]
    assert [line.replace("\\", "") for line in table] == [
        "| target | price before | price after | would be replaced |",
        (
            "| a/wb | $0.85 per hour (g2-standard-8, us-central1) "
            "| $1.00 per hour (g2-standard-12, us-central1) | data_disk |"
        ),
        "| d/wb | no target | $1.00 per hour (g2-standard-12, us-central1) | no |",
    ]
    assert "without disks and traffic" in text
    same = lint(repository.folder, "b.yaml", "--diff-base", "main", "--output-format", "markdown")
    assert "####" not in same.stdout


def test_several_specs_in_a_file_are_compared_by_name(repository: Repository) -> None:
    names = (f"name: one\n{CLOUD}", f"name: two\n{CLOUD}")
    pull_request(
        repository,
        {"a.yaml": "---\n".join(names)},
        {"a.yaml": "---\n".join((names[1], f"name: one\n{LARGER}"))},
    )
    (change,) = repository.lint("a.yaml").targets
    assert (change.address, change.replaced_fields) == ("a/wb", ("data_disk",))


def test_notebooks_are_not_compared(repository: Repository) -> None:
    repository.commit({"a.ipynb": "{}"})
    with pytest.raises(UsageError, match="apply only to specs"):
        repository.lint("a.ipynb", base="HEAD")
