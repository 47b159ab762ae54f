"""`provision lint` as pull requests, hooks and logs use it: several files in every form, hostile
names, files that are no specs.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests import fork_server
from tests.workflow import commands

GOOD = 'gpu: none\npython: "3.11"\npackages: []\n'
BAD = 'gpu: none\npython: "3.11"\npackages: [torch, transformers==5.13.1]\n'
FIXED = 'gpu: none\npython: "3.11"\npackages: [torch, transformers==5.13.1, accelerate>=1.3.0]\n'
HOSTILE = (
    "a%0A::error::x.yaml",
    "b\r::stop-commands::x.yaml",
    "c\n::add-mask::x.yaml",
    "::error::d.yaml",
    "##[error]e.yaml",
    "f,line=1::g.yaml",
)


def lint(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GITHUB_")}
    line = [*fork_server.ARGV, "lint", *words]
    return fork_server.run(
        line,
        cwd=folder,
        env={**kept, "NO_COLOR": "1", **variables},
        capture_output=True,
        text=True,
        timeout=600,
        stdin=subprocess.DEVNULL,
    )


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)


@pytest.mark.parametrize("form", ["text", "concise", "json", "sarif", "github"])
def test_every_form_takes_several_files(tmp_path: Path, form: str) -> None:
    write(tmp_path, a=BAD, b=GOOD, c=BAD)
    done = lint(tmp_path, "--output-format", form, "a.yaml", "b.yaml", "c.yaml")
    assert done.returncode == 1
    assert (
        done.stdout.count("PKG001 ") + done.stdout.count('"PKG001"') + done.stdout.count("[PKG001]")
        >= 2
    )
    assert "a.yaml" in done.stdout
    assert "c.yaml" in done.stdout
    assert lint(tmp_path, "--output-format", form, "b.yaml").returncode == 0


@pytest.mark.parametrize("form", ["text", "concise", "json", "sarif", "github"])
def test_a_file_that_cannot_be_read_hides_no_other(tmp_path: Path, form: str) -> None:
    write(tmp_path, a=BAD)
    done = lint(tmp_path, "--output-format", form, "gone.yaml", "a.yaml")
    assert done.returncode == 2
    assert "PKG001" in done.stdout
    assert "gone.yaml" in done.stdout + done.stderr
    assert "No such file" in done.stdout + done.stderr


def test_sarif_and_json_are_documents(tmp_path: Path) -> None:
    write(tmp_path, a=BAD, b=GOOD)
    as_json = json.loads(lint(tmp_path, "--output-format", "json", "a.yaml", "b.yaml").stdout)
    as_sarif = json.loads(lint(tmp_path, "--output-format", "sarif", "a.yaml", "b.yaml").stdout)
    (run,) = as_sarif["runs"]
    assert (
        [one["ruleId"] for one in run["results"]]
        == [one["id"] for one in as_json["diagnostics"]]
        == ["PKG001"]
    )
    assert run["invocations"][0]["exitCode"] == 1


def test_names_are_as_the_checkout_has_them(tmp_path: Path) -> None:
    folder = tmp_path / "sub"
    folder.mkdir()
    write(folder, a=BAD)
    (command,) = commands(
        lint(folder, "--output-format", "github", "a.yaml", GITHUB_WORKSPACE=str(tmp_path)).stdout
    )
    assert command.properties["file"] == "sub/a.yaml"
    (run,) = json.loads(
        lint(folder, "--output-format", "sarif", "a.yaml", GITHUB_WORKSPACE=str(tmp_path)).stdout
    )["runs"]
    assert (
        run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        == "sub/a.yaml"
    )


def test_the_step_summary_is_added_to(tmp_path: Path) -> None:
    names = [f"n{number:02}" for number in range(13)]
    write(tmp_path, **dict.fromkeys(names, BAD))
    files = [f"{name}.yaml" for name in names]
    (tmp_path / "summary.md").write_text("before\n")
    done = lint(
        tmp_path,
        "--output-format",
        "github",
        *files,
        GITHUB_STEP_SUMMARY=str(tmp_path / "summary.md"),
    )
    assert [command.properties["file"] for command in commands(done.stdout)] == files[:10]
    summary = (tmp_path / "summary.md").read_text()
    assert summary.startswith(
        "before\n### provision: 13 findings; GitHub does not annotate these 3"
    )
    assert re.findall(r"n\d\d", summary) == names[10:]
    assert len(commands(lint(tmp_path, "--output-format", "github", *files).stdout)) == 13


@pytest.mark.parametrize(
    "words",
    [
        ("--output-format", "github"),
        ("--output-format", "concise"),
        ("--diff",),
        ("--skip-foreign",),
    ],
    ids=" ".join,
)
def test_hostile_names_give_no_commands_of_their_own(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    for name in HOSTILE:
        (tmp_path / name).write_text(BAD)
    done = lint(
        tmp_path, *words, *HOSTILE, *(f"{name}.gone" for name in HOSTILE), GITHUB_ACTIONS="true"
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    found = [*commands(done.stdout), *commands(done.stderr)]
    assert {command.name for command in found} == ({"error"} if "github" in words else set())
    assert len(found) == (2 * len(HOSTILE) if "github" in words else 0)
    assert all(
        command.properties["title"].startswith(("PKG001 ", "unreadable file")) for command in found
    )


@pytest.mark.parametrize("form", ["github", "text", "concise"])
def test_hostile_values_give_no_commands_of_their_own(tmp_path: Path, form: str) -> None:
    values = [
        "\\r::stop-commands::x",
        "\\n::error::y",
        "::add-mask::z",
        "##[error]z",
        "%0A::error::w",
    ]
    filler = "x" * 60
    listed = "".join(f'"{filler} {value}": "{value}"\n' for value in values)
    write(
        tmp_path,
        a=f"{GOOD}{listed}# ::error::comment\n  ::error::text: 1\n",
        b="gpu: none\npython: 3.11\n\n::error::x: 1\n",
    )
    done = lint(
        tmp_path, "--output-format", form, "a.yaml", "b.yaml", GITHUB_ACTIONS="true", COLUMNS="60"
    )
    found = [*commands(done.stdout), *commands(done.stderr)]
    assert done.returncode == 1
    assert {command.name for command in found} == ({"error"} if form == "github" else set())
    assert all("file" in command.properties for command in found)


def test_a_diff_hides_secrets_beside_what_it_changes(tmp_path: Path) -> None:
    write(
        tmp_path,
        a="gpu: none\nenv: {HF_TOKEN: correct-horse-battery}\npackages: [torch, "
        "transformers==5.13.1]\npython: '3.11'\n",
    )
    done = lint(tmp_path, "--diff", "a.yaml")
    assert "+packages: [torch, transformers==5.13.1, accelerate>=1.3.0]" in done.stderr
    assert "correct-horse" not in done.stdout + done.stderr


# Files that are no specs


FILES = (
    ("k8s.yaml", "apiVersion: apps/v1\nkind: Deployment\n", False),
    ("list.yaml", "- a\n- b\n", False),
    ("helm.yaml", "{{- if .Values.x }}\na: 1\n{{- end }}\n", False),
    ("text.yaml", "# apiVersion: provision/v1\nsee: apiVersion\n", False),
    ("empty.yaml", "", False),
    ("binary.yaml", "\x00\x01", False),
    ("number.yaml", "apiVersion: 1\n", False),
    ("mine.yaml", "apiVersion: provision/v1\n" + BAD, True),
    ("later.yaml", "apiVersion: provision/v2\n" + BAD, True),
    ("quoted.yaml", "'apiVersion': \"provision/v1\"\n" + BAD, True),
    ("second.yaml", "a: 1\n---\napiVersion: provision/v1\n" + BAD, True),
    ("broken.yaml", "apiVersion: provision/v1\ngpu: [\n", True),
    ("provision.yaml", BAD, True),
    ("provision-train.yml", BAD, True),
    ("provision.train.yaml", "- a\n", True),
    ("provisional.yaml", BAD, False),
)


def test_foreign_files_are_left_alone_with_a_note(tmp_path: Path) -> None:
    for name, text, _ in FILES:
        (tmp_path / name).write_text(text)
    done = lint(tmp_path, "--skip-foreign", "--fix", "--", *(name for name, _, _ in FILES))
    assert re.findall(r"^skipped ([^: ]+): ", done.stderr, re.MULTILINE) == [
        name for name, _, ours in FILES if not ours
    ]
    assert all((tmp_path / name).read_text() == text for name, text, ours in FILES if not ours)
    foreign = lint(tmp_path, "--skip-foreign", *(name for name, _, ours in FILES if not ours))
    assert (foreign.returncode, foreign.stdout) == (0, "No findings.\n")


def test_foreign_files_that_cannot_be_read_are_left_alone_too(tmp_path: Path) -> None:
    (tmp_path / "large.yaml").write_text("a: 1\n" * 300_000)
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "provision.yaml").write_text("a: 1\n" * 300_000)
    done = lint(tmp_path, "--skip-foreign", "large.yaml", "folder.yaml")
    assert (done.returncode, done.stderr.count("skipped ")) == (0, 2)
    assert lint(tmp_path, "--skip-foreign", "provision.yaml").returncode == 2
    assert lint(tmp_path, "--skip-foreign", "gone.yaml").returncode == 2
    assert lint(tmp_path, "large.yaml").returncode == 2


def test_fixing_leaves_foreign_files_alone(tmp_path: Path) -> None:
    write(tmp_path, provision=BAD, other=BAD)
    done = lint(tmp_path, "--skip-foreign", "--fix", "provision.yaml", "other.yaml")
    assert done.returncode == 0
    assert (tmp_path / "provision.yaml").read_text() == FIXED
    assert (tmp_path / "other.yaml").read_text() == BAD


def test_unsafe_fixes_are_applied_on_request_only(tmp_path: Path) -> None:
    path = tmp_path / "provision.yaml"
    text = 'gpu: none\npython: "3.11"\npackages: []\ntraining: {precison: fp32}\n'
    path.write_text(text)
    assert lint(tmp_path, "--fix", "provision.yaml").returncode == 1
    assert path.read_text() == text
    refused = lint(tmp_path, "--unsafe-fixes", "provision.yaml")
    assert (refused.returncode, "needs --fix or --diff" in refused.stderr) == (2, True)
    shown = lint(tmp_path, "--diff", "--unsafe-fixes", "provision.yaml")
    assert "+training: {precision: fp32}" in shown.stderr
    assert lint(tmp_path, "--fix", "--unsafe-fixes", "provision.yaml").returncode == 0
    assert "precision: fp32" in path.read_text()
