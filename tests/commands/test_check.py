"""`provision check`: findings on the lines of requirements, notebooks and other files, by place."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft4Validator

from tests import fork_server
from tests.rules.notebooks import to_notebook

ROOT = Path(__file__).parents[2]
THREE = ("--on", "colab-t4", "--on", "workbench-l4", "--on", "this")
TOKEN = "hf_" + "canary" * 5


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty project whose environment has Python 3.12."""
    project = tmp_path / "project"
    (project / ".venv").mkdir(parents=True)
    (project / ".venv/pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.12.4\n")
    return project


def check(
    folder: Path, *words: str, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    dropped = ("GITHUB_", "VIRTUAL_ENV", "CONDA_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}
    return fork_server.run(
        [*fork_server.ARGV, "check", *words],
        cwd=folder,
        env={**kept, "NO_COLOR": "1", **(variables or {})},
        capture_output=True,
        text=True,
        timeout=600,
        stdin=subprocess.DEVNULL,
    )


def write(folder: Path, text: str, name: str = "requirements.txt") -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def findings(folder: Path, *words: str, **options: Any) -> dict[tuple[str, int], list[str]]:
    """Return the places of each finding, by its id and line; errors come first."""
    done = check(folder, *words, "--output-format", "json", **options)
    diagnostics = json.loads(done.stdout)["diagnostics"]
    found: dict[tuple[str, int], list[str]] = {}
    for one in sorted(diagnostics, key=lambda one: one["severity"] != "error"):
        found.setdefault((one["id"], one["range"]["start"]["line"]), []).extend(one["places"])
    return found


def test_a_contradicted_pin_has_its_findings_at_its_own_line(folder: Path) -> None:
    write(folder, "numpy>=2\ntorch==2.4.0\nnumpy==1.24.0\n")
    found = findings(folder, "requirements.txt", "--on", "colab-t4")
    assert found["PKG013", 3] == ["colab-t4"]
    assert ("IMP001", 1) in found


def test_what_a_person_sees(folder: Path) -> None:
    write(folder, "numpy\n-e ./ours\ntorch==2.4.0\n")
    done = check(folder, "requirements.txt", *THREE)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith(
        "error[PYT001] python-has-no-torch: torch==2.4.0 has no wheel for Python 3.13 on "
        "linux-x86_64;\n  torch 2.4.0 supports Python 3.8 to 3.12 (on colab-t4)\n"
        " --> requirements.txt:3:1\n"
        "  |\n2 | -e ./ours\n3 | torch==2.4.0\n  | ^^^^^^^^^^^^\n"
    )
    end = done.stdout[done.stdout.index("Left out or changed:") :].splitlines()
    assert end[1].startswith("  requirements.txt:2:1: `./ours` is not imported")
    assert [line.split("  ")[0] for line in end[-5:-2]] == ["colab-t4", "workbench-l4", "this"]
    assert end[-5].split("  ")[3].strip() == "1 error, 1 warning" or "1 error" in end[-5]
    assert "  ok  " in end[-4]
    assert end[-3].endswith("(Python 3.12 of .venv)")
    assert end[-1] == "To save a spec: provision import requirements.txt -o provision.yaml"


def test_what_was_not_checked_is_in_every_format(folder: Path) -> None:
    write(folder, "numpy\n-e ./ours\n--hash=sha256:0\n")
    words = ("requirements.txt", "--on", "colab-t4", "--output-format")
    message = "`./ours` is not imported: it comes from a path on this machine"
    lines = check(folder, *words, "concise").stdout.splitlines()
    assert lines[0] == f"requirements.txt:2:1: note: {message}"
    document = json.loads(check(folder, *words, "json").stdout)
    first = document["leftovers"][0]
    assert (first["line"], first["message"]) == (2, message)
    assert first["help"]
    assert [place["name"] for place in document["places"]] == ["colab-t4"]


def test_what_was_not_checked_is_wrapped(folder: Path) -> None:
    write(folder, f"-e ./{'folder/' * 9}ours\n")
    for columns in ("60", "100"):
        done = check(folder, "requirements.txt", "--on", "this", variables={"COLUMNS": columns})
        lines = done.stdout.partition("Left out or changed:\n")[2].partition("\n\n")[0].splitlines()
        assert max(map(len, lines)) <= int(columns)
        assert len(lines) > 3
        text = " ".join(map(str.strip, lines))
        assert "help: if a package index has it, add it as NAME==VERSION; otherwise add" in text


def test_nothing_is_written_and_no_finding_ends_with_0(folder: Path) -> None:
    write(folder, "numpy==2.1.3\n")
    before = sorted(folder.parent.rglob("*"))
    done = check(folder, "requirements.txt", *THREE)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("colab-t4      ok  Colab with T4, newest runtime (Python 3.13")
    assert sorted(folder.parent.rglob("*")) == before


@pytest.mark.parametrize(
    ("text", "finding", "line", "places"),
    [
        # The Pythons of the places differ.
        ("torch==2.1.0\n", "PYT001", 1, ["colab-t4", "workbench-l4", "this"]),
        ("torch==2.4.0\n", "PYT001", 1, ["colab-t4"]),
        ("# pins\nnumpy==1.26.4\n", "PKG013", 2, ["colab-t4"]),
        # So do the cards.
        ("torch==2.8.0\nflash-attn==2.8.3\n", "PKG017", 2, ["colab-t4"]),
        ("torch==2.8.0\nflash-attn==2.8.3\n", "PKG025", 2, ["this"]),
        ("torch==2.9.0+cpu\n", "CUD003", 1, None),
        # These are wrong everywhere.
        ("torch==2.2.2\nnumpy==2.1.0\n", "PKG011", 2, ["colab-t4", "workbench-l4", "this"]),
        ("\ntransformers==4.29.2\n", "PKG001", 2, ["colab-t4", "workbench-l4", "this"]),
        # The runtime brings packages, which only Colab does.
        ("numpy==2.0.2\n", "IMG029", 1, ["colab-t4"]),
    ],
)
def test_findings_are_on_the_line_at_the_places_that_have_them(
    folder: Path, text: str, finding: str, line: int, places: list[str] | None
) -> None:
    write(folder, text)
    found = findings(folder, "requirements.txt", *THREE)
    assert (finding, line) in found, found
    assert places is None or set(found[finding, line]) <= set(places)
    assert places is None or found[finding, line][0] in places


def test_the_build_of_torch_that_pip_installs_runs_on_the_card(folder: Path) -> None:
    write(folder, "torch==2.13.0\n")
    places = ("--on", "workbench-v100", "--on", "workbench-l4")
    assert findings(folder, "requirements.txt", *places) == {("GPU005", 1): ["workbench-v100"]}
    text = check(folder, "requirements.txt", *places).stdout
    assert "torch==2.13.0 for CUDA 13.0 has no code for V100" in text
    # The build is named, so it is not the default one.
    write(folder, "--extra-index-url https://download.pytorch.org/whl/cu126\ntorch==2.13.0\n")
    assert findings(folder, "requirements.txt", *places) == {}
    # The runtime has this release, which pip keeps.
    write(folder, "torch==2.11.0\n")
    assert findings(folder, "requirements.txt", "--on", "colab-t4") == {}


def test_the_driver_of_an_image_runs_the_build_that_pip_installs(folder: Path) -> None:
    write(folder, "torch==2.13.0\n")
    older = "workbench-l4@pytorch-2-7-cu128-ubuntu-2404-nvidia-570"
    found = findings(folder, "requirements.txt", "--on", older, "--on", "workbench-l4")
    assert found["CUD004", 1] == [older]


def test_a_place_can_be_pinned_to_a_runtime_or_an_image(folder: Path) -> None:
    write(folder, "torch==2.4.0\n")
    assert findings(folder, "requirements.txt", "--on", "colab-t4")["PYT001", 1] == ["colab-t4"]
    older = check(folder, "requirements.txt", "--on", "colab-t4@2026.07")
    assert older.returncode == 0
    assert (
        "colab-t4@2026.07  1 warning  Colab with T4, runtime 2026.07 (Python 3.12" in older.stdout
    )
    image = "workbench-l4@pytorch-2-4"
    assert check(folder, "requirements.txt", "--on", image).returncode == 0


def test_nothing_of_the_place_is_reported(folder: Path) -> None:
    """A requirements file has no project, zone, bucket, network, service account or runtime."""
    write(folder, "torch==2.13.0\n")
    for place in ("workbench-l4", "workbench-t4@workbench-instances-2603", "colab-l4"):
        found = findings(folder, "requirements.txt", "--on", place)
        assert {name[:3] for name, _ in found} <= {"IMG", "CUD"}, found
        assert {line for _, line in found} <= {1}


def test_the_defaults_are_a_place_of_each_kind_and_this_machine(folder: Path) -> None:
    write(folder, "numpy\n")
    document = json.loads(check(folder, "requirements.txt", "--output-format", "json").stdout)
    names = [place["name"] for place in document["places"]]
    assert names == ["colab-t4", "workbench-l4", "this"]
    assert [place["python"] for place in document["places"]] == ["3.13", "3.12", "3.12"]


@pytest.mark.parametrize(
    ("card", "places"),
    [
        ("T4", ["colab-t4", "workbench-t4", "this"]),
        ("A100", ["colab-a100", "workbench-a100", "this"]),
        ("none", ["colab-cpu", "workbench-cpu", "this"]),
        ("", ["colab-t4", "workbench-l4", "this"]),
    ],
)
def test_a_notebook_is_checked_for_the_card_it_was_saved_on(
    folder: Path, card: str, places: list[str]
) -> None:
    write(folder, to_notebook("!pip install -q einops==0.8.0\n", card), "train.ipynb")
    document = json.loads(check(folder, "train.ipynb", "--output-format", "json").stdout)
    assert [place["name"] for place in document["places"]] == places


def test_a_notebook_is_checked_for_the_runtime_it_was_saved_on(folder: Path) -> None:
    text = to_notebook("import torch\n", "T4").replace(
        '"gpuType": "T4"',
        '"gpuType": "T4", "runtimeAttributes": {"runtime_version": "2026.07"}',
    )
    write(folder, text, "train.ipynb")
    document = json.loads(check(folder, "train.ipynb", "--output-format", "json").stdout)
    assert document["places"][0]["name"] == "colab-t4@2026.07"


def test_findings_of_a_notebook_name_the_cell_and_its_line(folder: Path) -> None:
    cells = (
        "# %%\n!pip install -q \\\n  torch==2.4.0 einops\n# %%\n"
        "from transformers import TrainingArguments\n"
        'args = TrainingArguments("out", bf16=True)\n'
    )
    write(folder, to_notebook(cells, "T4"), "train.ipynb")
    done = check(folder, "train.ipynb", "--output-format", "concise")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert any(line.startswith("train.ipynb:cell 2:2:3: error PYT001 ") for line in lines), lines
    assert any(line.startswith("train.ipynb:cell 2:2:16: warning NTB001 ") for line in lines)
    assert any(line.startswith("train.ipynb:cell 3:2:") and " NTB" in line for line in lines)
    # The rules about specs and those about cells report the replaced torch: once is enough.
    assert sum(" NTB010 " in line or " IMG031 " in line for line in lines) == 1
    assert not any(" NTB017 " in line for line in lines), "PYT001 reports it"


def test_the_python_that_saved_a_notebook_is_not_required(folder: Path) -> None:
    info = {"name": "python", "version": "3.10.2"}
    write(folder, to_notebook("!pip install numpy==2.1.3\n", language_info=info), "train.ipynb")
    assert check(folder, "train.ipynb", *THREE).returncode == 0


def test_github_and_sarif_point_at_the_line_of_the_file(folder: Path) -> None:
    write(folder, "# ours\ntorch==2.4.0\n")
    write(folder, to_notebook("# a\n!pip install transformers==4.29.2\n", "T4"), "train.ipynb")
    names = ("requirements.txt", "train.ipynb", "--on", "colab-t4")
    done = check(folder, *names, "--output-format", "github")
    assert done.returncode == 1
    assert "::error file=requirements.txt,line=2,endLine=2,col=1,endColumn=12,title=PYT001 " in (
        done.stdout
    )
    rows = (folder / "train.ipynb").read_text().split("\n")
    line = next(number for number, row in enumerate(rows, 1) if "4.29.2" in row)
    assert f"::error file=train.ipynb,line={line},endLine={line}," in done.stdout
    log = json.loads(check(folder, *names, "--output-format", "sarif").stdout)
    schema = json.loads((ROOT / "tests/schemas/sarif-2.1.0.oasis.json").read_text())
    Draft4Validator(schema).validate(log)
    located = {
        (
            result["ruleId"],
            result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
            result["locations"][0]["physicalLocation"]["region"]["startLine"],
        )
        for result in log["runs"][0]["results"]
    }
    assert {("PYT001", "requirements.txt", 2), ("PKG001", "train.ipynb", line)} <= located


def test_conda_pyproject_and_freeze(folder: Path) -> None:
    write(
        folder,
        "name: x\ndependencies:\n  - python=3.11\n  - pip:\n      - transformers==4.29.2\n",
        "environment.yml",
    )
    found = findings(folder, "environment.yml", *THREE)
    assert found["IMG020", 3] == ["colab-t4"]
    assert found["PKG001", 5] == ["colab-t4", "workbench-l4", "this"]
    write(
        folder,
        '[project]\nname = "x"\nversion = "1"\nrequires-python = ">=3.10,<3.13"\n'
        'dependencies = [\n  "torch==2.4.0",\n]\n',
        "pyproject.toml",
    )
    found = findings(folder, "pyproject.toml", *THREE)
    assert found["IMP006", 4] == ["colab-t4"]
    write(folder, "torch==2.8.0\nnumpy==1.26.4\n", "freeze.txt")
    assert findings(folder, "freeze.txt", *THREE)["PKG013", 2] == ["colab-t4"]


def test_groups_are_checked_and_named_in_the_last_line(folder: Path) -> None:
    write(
        folder,
        '[project]\nname = "x"\nversion = "1"\n[project.optional-dependencies]\n'
        'train = ["transformers==4.29.2"]\n',
        "pyproject.toml",
    )
    assert check(folder, "pyproject.toml").returncode == 0
    done = check(folder, "pyproject.toml", "--group", "train")
    assert done.returncode == 1
    assert "provision import pyproject.toml --group train -o provision.yaml" in done.stdout
    unknown = check(folder, "pyproject.toml", "--group", "tests")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "none of the files has the group tests" in unknown.stderr


def test_the_command_of_the_last_line_saves_a_spec(folder: Path) -> None:
    write(folder, "numpy==2.1.3\n", "our requirements.txt")
    command = check(folder, "our requirements.txt").stdout.splitlines()[-1]
    assert command.endswith("provision import 'our requirements.txt' -o provision.yaml")
    words = ["import", "our requirements.txt", "-o", "provision.yaml"]
    subprocess.run(
        [*fork_server.ARGV, *words], cwd=folder, check=True, timeout=600, capture_output=True
    )
    assert "numpy==2.1.3" in (folder / "provision.yaml").read_text()


def test_this_machine_is_measured(folder: Path) -> None:
    programs = folder / "bin"
    write(folder, "#!/bin/sh\necho 'Tesla T4, 470.82.01'\n", "bin/nvidia-smi")
    (programs / "nvidia-smi").chmod(0o755)
    write(folder, "torch==2.9.0\n")
    variables = {"PATH": f"{programs}:{os.environ['PATH']}"}
    done = check(folder, "requirements.txt", "--on", "this", variables=variables)
    assert done.returncode == 1
    assert "this machine with T4 (Python 3.12 of .venv, driver 470.82.01)" in done.stdout
    assert "requires driver" in " ".join(done.stdout.split())
    assert " --> requirements.txt:1:1\n" in done.stdout
    write(folder, "#!/bin/sh\necho 'Tesla T4, 580.82.07'\n", "bin/nvidia-smi")
    assert check(folder, "requirements.txt", "--on", "this", variables=variables).returncode == 0


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["colab-t4,workbench-l4,this"], ["colab-t4", "workbench-l4", "this"]),
        (["Colab-T4, THIS,", "Workbench-L4"], ["colab-t4", "this", "workbench-l4"]),
        (["this,this", "colab-t4@2026.07,this"], ["this", "colab-t4@2026.07"]),
    ],
)
def test_places_are_listed_with_commas_and_in_any_case(
    folder: Path, words: list[str], names: list[str]
) -> None:
    write(folder, "numpy\n")
    options = [option for word in words for option in ("--on", word)]
    done = check(folder, "requirements.txt", *options, "--output-format", "json")
    assert [place["name"] for place in json.loads(done.stdout)["places"]] == names


def test_the_python_of_this_machine_is_named_with_its_path(folder: Path) -> None:
    write(folder, "numpy\n")
    other = folder.parent / "other"
    other.mkdir()
    (other / "pyvenv.cfg").write_text("version = 3.13.1\n")
    done = check(folder, "requirements.txt", "--on", "this", variables={"VIRTUAL_ENV": str(other)})
    assert f"(Python 3.13 of {other})" in done.stdout
    (folder / ".venv/pyvenv.cfg").unlink()
    write(folder, "#!/bin/sh\necho 3.10\n", "bin/python3")
    (folder / "bin/python3").chmod(0o755)
    done = check(folder, "requirements.txt", "--on", "this", variables={"PATH": "bin:/usr/bin"})
    assert "(Python 3.10 of bin/python3)" in done.stdout


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("colab-t5", "did you mean 'colab-t4'?"),
        ("workbench_l4", "workbench-l4"),
        ("thsi", "did you mean 'this'?"),
        ("colab-t4@2026.06", "colab-t4@2026.07"),
        ("workbench-l4@nothing", "workbench-l4@workbench-instances-2603"),
        ("this@3.12", "provision facts list places"),
        ("\x1b[31m", "provision facts list places"),
        ("", "provision facts list places"),
        (",", "provision facts list places"),
        ("colab-t4,thsi", "did you mean 'this'?"),
        ("this,COLAB-T4@2026.06", "colab-t4@2026.07"),
    ],
)
def test_an_unknown_place_is_a_clear_error(folder: Path, name: str, hint: str) -> None:
    write(folder, "numpy\n")
    done = check(folder, "requirements.txt", "--on", name)
    assert (done.returncode, done.stdout) == (2, "")
    assert hint in done.stderr
    assert "\x1b" not in done.stderr
    assert "Traceback" not in done.stderr


BAD = {
    "missing.txt": (None, "cannot read missing.txt"),
    "empty.txt": (b"", "empty.txt is empty"),
    "notes.md": (b"# notes\n", "the format of notes.md is unknown"),
    "spec.yaml": (b"gpu: none\npackages: []\n", "check it with `provision lint spec.yaml`"),
    "requirements-latin.txt": (b"# caf\xe9\nnumpy\n", "the bytes are not valid utf-8"),
    "requirements-code.txt": (b"# -*- coding: nowhere -*-\n", "unknown encoding"),
    "requirements-nul.txt": (b"numpy\0\n", "NUL character"),
    "requirements-huge.txt": (b"#" * (9 << 20), "requirements-huge.txt"),
    "broken.ipynb": (b'{"cells": [', "broken.ipynb:1:12: the notebook is not valid JSON"),
    "list.ipynb": (b"[]", "is not a notebook"),
    "deep.ipynb": (b'{"cells": ' + b"[" * 100_000, "deep.ipynb"),
    "environment.yml": (b"dependencies: [a\n", "environment.yml"),
    "environment-tag.yml": (b"dependencies: !!python/object:os.system [a]\n", ""),
    "pyproject.toml": (b"[project\n", "pyproject.toml"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("output_format", ["text", "json", "sarif", "github"])
def test_a_file_that_cannot_be_read_is_a_clear_error(
    folder: Path, name: str, output_format: str
) -> None:
    content, message = BAD[name]
    if content is not None:
        (folder / name).write_bytes(content)
    done = check(folder, name, "--on", "colab-t4", "--output-format", output_format)
    assert "Traceback" not in done.stderr
    assert "this is a bug" not in done.stderr
    assert done.returncode == (2 if message else 0), done.stderr
    if output_format in ("json", "sarif"):
        json.loads(done.stdout)
    shown = done.stdout if output_format == "github" else done.stderr
    assert message in shown.replace("%3A", ":")


def test_the_other_files_are_checked_if_one_cannot_be_read(folder: Path) -> None:
    write(folder, "transformers==4.29.2\n")
    done = check(folder, "requirements.txt", "missing.txt", "--on", "this")
    assert done.returncode == 2
    assert "warning[PKG001]" in done.stdout
    assert "cannot read missing.txt" in done.stderr


def test_lines_that_pip_refuses_are_errors(folder: Path) -> None:
    write(folder, "-r base.txt\ntorch=2.4.0\n-r\n-r ../../outside.txt\n-r gone.txt\n")
    write(folder, "-r requirements.txt\nnumpy\n", "base.txt")
    write(folder.parent.parent, "transformers==4.29.2\n", "outside.txt")
    (folder / ".git").mkdir()
    done = check(folder, "requirements.txt", "--on", "this", "--output-format", "concise")
    assert done.returncode == 1
    assert [line.partition(" on ")[0][:60] for line in done.stdout.splitlines()] == [
        "base.txt:1:1: error IMP002 -r requirements.txt is not read: it includes itself"[:60],
        "requirements.txt:2:1: error IMP002 torch=2.4.0 is not a requirement"[:60],
        "requirements.txt:3:1: error IMP002 the option -r has no value"[:60],
        "requirements.txt:4:1: warning IMP003 -r ../../outside.txt is not read"[:60],
        "requirements.txt:5:1: error IMP002 -r gone.txt is not read: cannot"[:60],
    ]
    (folder.parent.parent / "outside.txt").unlink()


INDEX = "--extra-index-url https://download.pytorch.org/whl"


@pytest.mark.parametrize(
    ("text", "line", "builds"),
    [
        ("torch==2.4.0+cu126\n", 1, "cpu, cu118, cu121, cu124"),
        (f"{INDEX}/cu126\ntorch == 2.4.0+CU126 \\\n  --hash=sha256:{'0' * 64}\n", 2, "cu124"),
        ("torch===2.4.0+cu999 ; python_version >= '3'\n", 1, "cpu, cu118"),
    ],
)
def test_a_build_of_torch_that_was_never_published_is_an_error_everywhere(
    folder: Path, text: str, line: int, builds: str
) -> None:
    write(folder, text)
    found = findings(folder, "requirements.txt", *THREE)
    assert found["IMP004", line] == ["colab-t4", "workbench-l4", "this"]
    # The rule about specs and the missing index would report the same.
    assert not {"CUD002", "IMP005"} & {name for name, _ in found}
    done = check(folder, "requirements.txt", *THREE, "--output-format", "concise")
    message = next(row for row in done.stdout.splitlines() if " IMP004 " in row)
    assert builds in message
    assert "(on " not in message


@pytest.mark.parametrize(
    "text",
    [
        "torch==2.4.0+cu121\n",
        "torch==2.4.0+cpu\n",
        f"{INDEX}/cu121\ntorch==2.4.0+cu121\n",
        "torch==99.0.0+cu121\n",  # newer than the facts
        "torch==2.4.0\n",
        "flash-attn==2.8.3+cu999\n",
    ],
)
def test_other_builds_are_not_called_unpublished(folder: Path, text: str) -> None:
    write(folder, text)
    found = findings(folder, "requirements.txt", *THREE)
    assert "IMP004" not in {name for name, _ in found}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("torch==2.4.0+cu121\n", True),
        ("torch==2.4.0+cpu\n", True),
        ("torchvision==0.19.0+cu121\n", True),
        (f"{INDEX}/cu118\ntorch==2.4.0+cu121\n", True),
        (f"{INDEX}/cu121\ntorch==2.4.0+cu121\n", False),
        (f"{INDEX}\ntorch==2.4.0+cu121\n", False),
        (f"{INDEX}/cu1210\ntorch==2.4.0+cu121\n", True),
        ("-f https://download.pytorch.org/whl/torch_stable.html\ntorch==2.4.0+cu121\n", False),
        ("--index-url https://mirror.example.org/simple\ntorch==2.4.0+cu121\n", False),
        ("torch==2.4.0\n", False),
    ],
)
def test_a_build_needs_an_index_that_has_it(folder: Path, text: str, *, expected: bool) -> None:
    write(folder, text)
    found = findings(folder, "requirements.txt", "--on", "workbench-l4")
    assert ("IMP005" in {name for name, _ in found}) is expected
    write(folder, to_notebook("!pip install " + " ".join(text.split()), "T4"), "train.ipynb")
    found = findings(folder, "train.ipynb", "--on", "workbench-l4")
    assert ("IMP005" in {name for name, _ in found}) is expected


def test_the_torch_of_the_runtime_needs_no_index(folder: Path) -> None:
    write(folder, "torch==2.11.0+cu128\n")
    found = findings(folder, "requirements.txt", "--on", "colab-t4", "--on", "workbench-l4")
    assert found["IMP005", 1] == ["workbench-l4"]


def test_files_of_other_tools_have_their_own_indexes(folder: Path) -> None:
    text = '[tool.poetry.dependencies]\ntorch = "2.4.0+cu121"\n'
    write(folder, text, "pyproject.toml")
    assert "IMP005" not in {name for name, _ in findings(folder, "pyproject.toml", *THREE)}


def test_a_project_that_excludes_the_python_of_a_machine(folder: Path) -> None:
    project = '[project]\nname = "ours"\nversion = "1"\nrequires-python = "{}"\n'
    write(folder, project.format(">=3.9,<3.13") + 'dependencies = ["numpy"]\n', "pyproject.toml")
    found = findings(folder, "pyproject.toml", *THREE)
    assert found["IMP006", 4] == ["colab-t4"]
    assert "IMG020" not in {name for name, _ in found}
    done = check(folder, "pyproject.toml", *THREE)
    assert done.returncode == 1
    assert (
        "error[IMP006] python-excluded: pyproject.toml requires Python >=3.9,<3.13, but "
        "the machine has\n  Python 3.13 (on colab-t4)" in done.stdout
    )
    # Workbench can have an environment with another Python, so there it is a warning.
    write(folder, project.format("<3.12") + 'dependencies = ["numpy"]\n', "pyproject.toml")
    done = check(folder, "pyproject.toml", "--on", "workbench-l4")
    assert (done.returncode, "warning[IMP006]" in done.stdout) == (0, True)


def test_conda_brings_the_python_that_its_file_names(folder: Path) -> None:
    write(folder, "dependencies:\n  - python=3.10\n  - numpy\n", "environment.yml")
    found = findings(folder, "environment.yml", "--on", "workbench-l4", "--on", "this")
    assert "IMP006" not in {name for name, _ in found}


def test_lines_that_contradict_each_other_are_an_error(folder: Path) -> None:
    write(folder, "numpy==1.26.4\nnumpy==2.1.3\n")
    found = findings(folder, "requirements.txt", *THREE)
    assert found["IMP001", 2] == ["colab-t4", "workbench-l4", "this"]


def test_half_a_surrogate_pair_is_read_and_listed(folder: Path) -> None:
    text = to_notebook("!pip install einops==0.8.0 # \\ud83d\n", "T4").replace(
        "\\\\ud83d", "\\ud83d"
    )
    assert "\\ud83d" in text
    write(folder, text, "train.ipynb")
    for output_format in ("text", "json", "sarif", "github"):
        done = check(folder, "train.ipynb", "--output-format", output_format)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
    assert "half of a surrogate pair" in check(folder, "train.ipynb").stdout


def test_secrets_and_control_characters_are_not_shown(folder: Path) -> None:
    write(
        folder,
        f"--extra-index-url https://me:{TOKEN}@example.org/simple\ntransformers==4.29.2\n"
        "\x1b[31mtorch=2.0\n",
    )
    for output_format in ("text", "concise", "json", "sarif", "github"):
        done = check(folder, "requirements.txt", "--output-format", output_format)
        assert TOKEN not in done.stdout + done.stderr
        assert "\x1b" not in done.stdout + done.stderr


def test_a_marker_that_is_nested_deeply_is_not_a_traceback(folder: Path) -> None:
    write(folder, "numpy; " + "(" * 2000 + "python_version > '3'" + ")" * 2000 + "\n")
    done = check(folder, "requirements.txt", "--on", "colab-t4")
    assert done.returncode in (0, 1)
    assert "this is a bug" not in done.stderr


def test_lint_names_this_command(folder: Path) -> None:
    write(folder, "numpy\n")
    done = subprocess.run(
        [*fork_server.ARGV, "lint", "requirements.txt"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 1
    assert "check it as it is with `provision check requirements.txt`" in done.stderr


def test_the_places_are_listed(folder: Path) -> None:
    words = [*fork_server.ARGV, "facts", "list", "places"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0
    assert "colab-t4 " in done.stdout
    assert "\n  2026.07\n" in done.stdout
    data = subprocess.run(
        [*words, "--output-format", "json"], cwd=folder, capture_output=True, timeout=600
    )
    names = {place["name"]: place for place in json.loads(data.stdout)["places"]}
    assert names["colab-t4"]["default"]
    assert not names["colab-t4@2026.07"]["default"]
    assert names["colab-t4@2026.07"]["python"] == "3.12"


def test_the_same_finding_at_two_places_is_one(folder: Path) -> None:
    cells = (
        "from transformers import TrainingArguments\n"
        'args = TrainingArguments("out", bf16=True, evaluation_strategy="epoch")\n'
    )
    write(folder, to_notebook(cells, "T4"), "train.ipynb")
    found = findings(folder, "train.ipynb", "--on", "colab-t4", "--on", "workbench-t4")
    assert found["NTB007", 2] == ["colab-t4", "workbench-t4"]
    text = check(folder, "train.ipynb", "--on", "colab-t4", "--on", "workbench-t4").stdout
    assert "but the T4 has 7.5" in " ".join(text.split())
    assert "\n  = fix" not in text
    assert "help: use eval_strategy" in text


def test_what_only_provision_refuses_is_not_reported(folder: Path) -> None:
    write(folder, "dependencies:\n  - python=3.9\n  - ffmpeg\n  - numpy=1.26\n", "environment.yml")
    done = check(folder, "environment.yml", "--on", "workbench-l4")
    assert done.returncode == 0, done.stdout
    assert "environment.yml:3:5: ffmpeg is not checked" in done.stdout
    assert "checked with Python 3.9, which the files specify" in done.stdout


def test_no_finding_speaks_of_a_spec(folder: Path) -> None:
    """The fields of a spec are not in these files."""
    write(folder, "torch==2.9.0+cpu\nnumpy\nflash-attn==2.8.3\ntransformers==4.29.2\n")
    document = json.loads(check(folder, "requirements.txt", "--output-format", "json").stdout)
    for one in document["diagnostics"]:
        text = f"{one['message']} {one['why']} {one['help']}"
        for words in ("the spec", "`packages`", "cuda:", "gpu:", "python:", "target ", "build:"):
            assert words not in text, text
    assert len(document["diagnostics"]) > 5


def test_standard_input_is_checked(folder: Path) -> None:
    done = subprocess.run(
        [*fork_server.ARGV, "check", "-", "--on", "this"],
        cwd=folder,
        input="numpy==2.3.1 --hash=bad\n",
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 1
    assert "stdin-requirements.txt:1:14" in done.stdout
    assert "IMP002" in done.stdout
    assert "To save a spec" not in done.stdout


def test_a_line_and_a_cell_are_reported_once(folder: Path) -> None:
    write(folder, "torch==2.9.0+cu126\ntorch==2.8.0+cu118\n")
    done = check(folder, "requirements.txt", "--on", "this", "--output-format", "concise")
    assert done.stdout.count("requirements.txt:2:1: error IMP001") == 1
    write(folder, to_notebook("!pip instal einops==0.8.0\n"), "a.ipynb")
    done = check(folder, "a.ipynb", "--on", "this", "--output-format", "concise")
    assert done.stdout.count("pip has no command instal") == 1
    assert "was left out" not in done.stdout


def test_nothing_to_report_is_no_line(folder: Path) -> None:
    write(folder, "numpy==2.3.1\n")
    done = check(folder, "requirements.txt", "--on", "this", "--output-format", "concise")
    assert (done.returncode, done.stdout) == (0, "")


def test_what_trainer_needs_is_an_error_only_if_a_cell_uses_it(folder: Path) -> None:
    def severities(*names: str) -> dict[str, str]:
        done = check(folder, *names, "--on", "workbench-l4", "--output-format", "json")
        return {one["id"]: one["severity"] for one in json.loads(done.stdout)["diagnostics"]}

    trackers = "torch==2.6.0\ntransformers==4.50.0\nwandb\n"
    with_tensorflow = "torch==2.6.0\ntransformers==4.50.0\ntensorflow==2.17.0\naccelerate\n"
    cell = "from transformers import TrainingArguments\nTrainingArguments(output_dir='o')\n"
    write(folder, to_notebook(cell), "train.ipynb")
    for text, rule in ((trackers, "PKG001"), (with_tensorflow, "PKG028")):
        write(folder, text)
        found = severities("requirements.txt")
        assert found[rule] == "warning"
        assert "PKG022" not in found
        assert severities("requirements.txt", "train.ipynb")[rule] == "error"
