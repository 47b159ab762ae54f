"""Rules about notebooks beyond their examples: branches, upgrades, places, and locations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from provision.diagnostics import Applicability, Severity
from provision.facts import Facts
from provision.imports.notebook import read_notebook
from provision.rules import ResolvedSet, load_notebook_rules, run_rules_on_notebook
from provision.rules.notebook.context import NotebookContext
from provision.rules.notebook.python_code import RELEVANT
from tests.rules.notebooks import JudgedNotebook, judge_notebook, to_notebook

SPEC = 'gpu: L4\npython: "3.12"\npackages: [torch, "transformers[torch]"]\n'
LOCKED = ResolvedSet({"torch": "2.11.0", "transformers": "5.0.0", "numpy": "2.3.0"}, "3.12")
TRAINER = "from transformers import TrainingArguments\n"


@pytest.fixture
def judge(facts: Facts, tmp_path: Path):
    def judged(
        text: str, colab: str = "", spec: str = "", locked: ResolvedSet | None = None
    ) -> JudgedNotebook:
        return judge_notebook(to_notebook(text, colab), facts, tmp_path, spec, locked)

    return judged


@pytest.mark.parametrize(
    "text",
    [
        # Installs that run only if the import fails, or only somewhere else.
        "try:\n    import trl\nexcept ImportError:\n    !pip install trl==0.24.0\n",
        "import trl\n# %%\nif False:\n    !pip install trl==0.24.0\n",
        "import sys\nif 'google.colab' in sys.modules:\n    !pip install transformers\n",
        # The name of a magic, a comment or a string is not a command.
        "# !pip install transformers\nx = '!pip install transformers'\n",
        "%%writefile a.py\nimport google.colab\n",
        "%%bash\ncd data\nls\n",
        # Not the class of transformers.
        "from mine import TrainingArguments\na = TrainingArguments(learning_rates=1)\n",
        f"!pip install transformers==5.0.0\n{TRAINER}a = TrainingArguments(**arguments)\n",
        "x = 'see https://user@example.org/content/y'\n",
        "def broken(:\n",
    ],
)
def test_what_is_not_found(judge, text: str) -> None:
    assert judge(text).ids == []


@pytest.mark.parametrize(
    ("command", "ids"),
    [
        ("%pip install numpy", ["NTB001"]),
        ("%pip install numpy>=1.20", ["NTB001"]),
        ("%pip install -U numpy", ["NTB001", "NTB004"]),
        ("%pip install --force-reinstall numpy", ["NTB001", "NTB004"]),
        ("%pip install -qU numpy", ["NTB001", "NTB004"]),
        ("%pip install numpy==2.1.3", []),
        ("%pip install numpy==2.1.*", ["NTB001"]),
        ("%pip install torch==2.11.0", []),
        ("%pip install torch==2.11.0+cu126", ["NTB010"]),
        ("import os; os.system('pip install numpy==1.26.4')", ["NTB004"]),
    ],
)
def test_what_pip_replaces_on_the_newest_runtime(judge, command: str, ids: list[str]) -> None:
    assert sorted(judge(command + "\n", "T4").ids) == ids


def test_the_saved_runtime_decides(facts: Facts, tmp_path: Path) -> None:
    old = {"provenance": [], "runtimeAttributes": {"runtime_version": "2025.07"}}
    document = json.loads(to_notebook("%pip install torch==2.11.0\n", "none"))
    document["metadata"]["colab"] = old
    (found,) = judge_notebook(json.dumps(document), facts, tmp_path).findings
    assert found.id == "NTB010"
    assert "Colab runtime 2025.07" in found.message


@pytest.mark.parametrize(
    ("runtime", "requirement", "python"),
    [
        ("2025.07", "torch==2.0.1", ""),  # Python 3.11
        ("2026.07", "torch==2.0.1", "Python 3.12 of Colab runtime 2026.07"),
        ("2026.07", "'torch>=1.13,<2.2'", "Python 3.12 of Colab runtime 2026.07"),
        ("2026.07", "'torch>=1.13'", ""),
        ("2026.07", "torch==99.0", ""),
        ("2026.07", "torch==2.4.1", ""),
        ("", "torch==2.4.1", "Python 3.13 of the newest Colab runtime"),
    ],
)
def test_the_python_of_the_saved_runtime_has_to_have_a_wheel_of_torch(
    facts: Facts, tmp_path: Path, runtime: str, requirement: str, python: str
) -> None:
    document = json.loads(to_notebook(f"%pip install {requirement}\n", "T4"))
    if runtime:
        document["metadata"]["colab"]["runtimeAttributes"] = {"runtime_version": runtime}
    judged = judge_notebook(json.dumps(document), facts, tmp_path)
    assert ("NTB017" in judged.ids) == bool(python)
    if python:
        finding = judged.one("NTB017")
        assert finding.severity is Severity.ERROR
        assert f"has no wheel for {python}; torch 2." in finding.message
        assert "install torch 2." in finding.help
        assert "remove torch from the command" in finding.help


@pytest.mark.parametrize(
    ("written", "fixed", "applicability"),
    [
        ("transformers", "transformers==5.0.0", Applicability.SAFE),
        ("'transformers[torch]>=4'", "'transformers[torch]==5.0.0'", Applicability.SAFE),
        ('"Transformers"', '"Transformers==5.0.0"', Applicability.SAFE),
        ("'transformers<5'", "'transformers==5.0.0'", Applicability.UNSAFE),
        ("torch", "torch==2.11.0", Applicability.SAFE),
        ("einops", "", Applicability.MANUAL),
    ],
)
def test_the_locked_version_is_written(
    judge, written: str, fixed: str, applicability: Applicability
) -> None:
    locked = ResolvedSet({"torch": "2.11.0+cu128", "transformers": "5.0.0"}, "3.12", "cu128")
    judged = judge(f"!pip install -q {written} # all\n", "", SPEC, locked)
    finding = judged.one("NTB001")
    assert (finding.fix.applicability if finding.fix else Applicability.MANUAL) is applicability
    if finding.fix:
        (text,) = judged.source.apply_fixes([finding.fix]).values()
        assert text == f"!pip install -q {fixed} # all"


def test_a_command_in_a_list_of_python_is_fixed(judge) -> None:
    code = 'import subprocess, sys\nsubprocess.run([sys.executable, "-m", "pip", "install", "{}"])'
    judged = judge(code.format("transformers"), "", SPEC, LOCKED)
    (text,) = judged.source.apply_fixes([judged.one("NTB001").fix]).values()
    assert text == code.format("transformers==5.0.0")


@pytest.mark.parametrize(
    ("code", "severity", "message"),
    [
        ("!pip install transformers==5.0.0\n", Severity.ERROR, "transformers 5.0.0 has no"),
        ("!pip install 'transformers==5.0.0,>4'\n", Severity.ERROR, "transformers 5.0.0 has no"),
        ("!pip install -U transformers\n", Severity.WARNING, "has no argument no_cuda"),
        ("", Severity.ERROR, "has no argument no_cuda"),
        ("!pip install git+https://example.org/transformers\n", None, ""),
        ("!pip install transformers==4.40.2\n", None, ""),
        ("!pip install transformers==99.0\n", None, ""),
    ],
)
def test_the_release_of_transformers(
    judge, code: str, severity: Severity | None, message: str
) -> None:
    judged = judge(f"{code}{TRAINER}a = TrainingArguments('o', no_cuda=True)\n", "T4")
    found = [finding for finding in judged.findings if finding.id == "NTB005"]
    assert [finding.severity for finding in found] == ([severity] if severity else [])
    assert all(message in finding.message for finding in found)


def test_arguments_of_subclasses_are_theirs(judge) -> None:
    code = "from trl import SFTConfig\na = SFTConfig('o', packing=True, own=1, no_cuda=True)\n"
    judged = judge(code, "", SPEC, LOCKED)
    assert judged.at(judged.one("NTB005")) == "no_cuda"


def test_a_new_name_that_is_there_already_is_not_written_twice(judge) -> None:
    code = f"{TRAINER}a = TrainingArguments('o', no_cuda=True, use_cpu=True)\n"
    assert judge(code, "", SPEC, LOCKED).one("NTB005").fix is None


def test_each_target_outside_colab_is_named(judge) -> None:
    spec = (
        f'{SPEC}targets:\n  here: {{kind: local}}\n  colab: {{kind: colab, runtime: "2026.07"}}\n'
    )
    (found,) = judge("from google.colab import userdata\n", "T4", spec).findings
    assert found.severity is Severity.WARNING
    assert found.message.endswith("does not exist on target `here`")


def test_a_shell_line_before_others_is_reported(judge) -> None:
    text = "!cd data\nfiles = !ls\n!cd a && \\\n  ls\n!export A=1; env\n!export B='1 2'\n"
    judged = judge(text)
    assert [judged.at(finding) for finding in judged.findings] == ["cd data", "export B='1 2'"]
    assert [finding.fix is not None for finding in judged.findings] == [True, False]


def test_positions_are_those_of_escaped_text(facts: Facts, tmp_path: Path) -> None:
    """In ASCII and UTF-8, with characters outside of the first plane before the finding."""
    document = json.loads(to_notebook("x = '\U0001f600 é \\\\ \\t'; y = 1; !x\n"))
    line = "%pip install 'transformers>4' # \U0001f600 \"é\" \t"
    document["cells"][0]["source"] = ["s = '\U0001f600\"\\\\'\n", line]
    for ascii_only in (True, False):
        raw = json.dumps(document, ensure_ascii=ascii_only)
        judged = judge_notebook(raw, facts, tmp_path, SPEC, LOCKED)
        finding = judged.one("NTB001")
        ((in_file,), file) = judged.source.findings_in_file([finding])
        span = file.span(in_file.where)
        assert raw[span.start.offset : span.end.offset] == "'transformers>4'"
        fixed = judged.source.apply_to_file([finding.fix])
        assert fixed == raw.replace("transformers>4", "transformers==5.0.0")
        assert file.apply_fixes([in_file.fix]) == {"train.ipynb": fixed}
        assert judged.at(finding) == "'transformers>4'"


def test_a_rule_that_fails_is_a_finding(facts: Facts) -> None:
    def fails(context: NotebookContext):
        raise KeyError("hunter2")

    rules = load_notebook_rules()
    notebook = read_notebook(Path("a.ipynb"), to_notebook("!pip install einops\n"))
    broken = (rules[1]._replace(check=fails), rules[0])
    found = run_rules_on_notebook(NotebookContext(notebook, facts), broken)
    assert [finding.id for finding in found] == ["BUG000", "NTB001"]
    assert "not in the notebook" in found[0].why
    assert "hunter2" not in str(found)


def test_a_notebook_without_cells_has_no_findings(facts: Facts, tmp_path: Path) -> None:
    assert judge_notebook('{"cells": []}', facts, tmp_path).ids == []


def test_cells_with_what_rules_look_for_are_parsed(facts: Facts) -> None:
    """A subclass of another name would not be found."""
    classes = {row.of.partition(" ")[0] for row in facts.subclass_arguments.values()}
    names = {*classes, "TrainingArguments", "Accelerator", "os.kill", "os._exit", "exit", "quit"}
    assert classes
    assert all(RELEVANT.search(f"{name}(x=1)") for name in names)


def test_cells_of_render_have_no_warnings(judge) -> None:
    title = '# @title Set up { display-mode: "form" }\n'
    body = "import os\nos.path.isdir('/content')\n"
    written = f"{title}# Written by `provision render`. More.\n{body}"

    assert judge(written, spec=SPEC).ids == []
    assert judge(title + body, spec=SPEC).ids == ["NTB006"]
    assert "NTB008" in judge(f"{written}token = 'hf_{'aB3' * 11}d'\n", spec=SPEC).ids
