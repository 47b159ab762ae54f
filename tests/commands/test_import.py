"""`provision import` and `provision init --from`: what a person sees, writes and reads back."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.rig import Bench, make_index, make_wheel, small_spec

CUDA = "torch==2.0.1+cu118\nnumpy==1.26.4\n"


def write(bench: Bench, name: str, text: str) -> Path:
    path = bench.folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_what_a_person_sees(bench: Bench) -> None:
    write(bench, "requirements.txt", f"{CUDA}-e ./ours\n")
    done = bench.run("import", "requirements.txt", "-o", "mine.yaml")
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "wrote mine.yaml\nnext: provision lint mine.yaml, then provision lock mine.yaml\n"
    )
    assert done.stderr.startswith(
        "requirements.txt (requirements file): 2 packages, cuda\n\nLeft out or changed:\n"
        "  requirements.txt:3:1: "
    )
    assert "gpu: T4 (no file names the GPU for this CUDA build: replace this GPU" in done.stderr
    written = (bench.folder / "mine.yaml").read_text(encoding="utf-8")
    assert 'cuda: "11.8"\n' in written
    assert "  - torch==2.0.1\n  - numpy==1.26.4\n" in written
    assert bench.run("lint", "mine.yaml").returncode == 0


def test_without_a_file_the_spec_alone_is_on_standard_output(bench: Bench) -> None:
    write(bench, "requirements.txt", "numpy\n")
    done = bench.run("import", "requirements.txt")
    bench.spec(done.stdout)
    assert bench.run("lint", "spec.yaml").returncode == 0
    assert "requirements.txt (requirements file): 1 package" in done.stderr


def test_findings_show_the_original_line(bench: Bench) -> None:
    write(bench, "requirements.txt", "# ours\ntransformers==5.13.1\ntorch==2.3.0\n")
    done = bench.run("import", "requirements.txt")
    assert done.returncode == 1
    assert "error[" in done.stderr
    assert re.search(
        r"::: requirements\.txt:3:1\n.*\n3 \| torch==2\.3\.0\n.*imported from here",
        done.stderr.replace("  |", " |").replace(" 3 |", "3 |"),
    ), done.stderr


def test_contradictions_end_with_1(bench: Bench) -> None:
    write(bench, "requirements.txt", "numpy==1.26.4\n")
    write(bench, "more-requirements.txt", "numpy==2.0.1\n")
    done = bench.run("import", "requirements.txt", "more-requirements.txt", "-o", "spec.yaml")
    assert done.returncode == 1
    assert (
        "Conflicts (the first value is in the spec):\n"
        "  requirements.txt:1:1, more-requirements.txt:1:1: numpy==1.26.4 and numpy==2.0.1 "
        "exclude each other\n" in done.stderr
    )
    assert "next: fix the problems listed above, then provision lint spec.yaml" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        (["none.txt"], ["cannot read none.txt"]),
        (["notes.md"], ["the format of notes.md is unknown", "the supported formats are "]),
        (["requirements.txt", "-o", "spec.txt"], ["spec.txt is not a valid name for a spec"]),
        (["requirements.txt", "-o", "there.yaml"], ["there.yaml already exists", "--force"]),
        (
            ["requirements.txt", "--group", "x"],
            ["none of the files has the group x", "omit --group"],
        ),
        (
            ["pyproject.toml", "--group", "x"],
            ["none of the files has the group x", "the files have dev"],
        ),
        (["broken.toml"], ["broken.toml"]),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_refusals(bench: Bench, arguments: list[str], messages: list[str]) -> None:
    write(bench, "requirements.txt", "numpy\n")
    write(bench, "notes.md", "some text\n")
    write(bench, "there.yaml", "kept")
    project = '[project]\nname = "a"\nversion = "1"\n[dependency-groups]\ndev = ["pytest"]\n'
    write(bench, "pyproject.toml", project)
    write(bench, "broken.toml", "[project\n")
    done = bench.run("import", *arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    for message in messages:
        assert message in done.stderr
    assert (bench.folder / "there.yaml").read_text() == "kept"


def test_force_overwrites(bench: Bench) -> None:
    write(bench, "requirements.txt", "numpy\n")
    path = write(bench, "spec.yaml", "old")
    assert bench.run("import", "requirements.txt", "-o", "spec.yaml", "--force").returncode == 0
    assert "numpy" in path.read_text()


def test_a_group_is_imported_on_request(bench: Bench) -> None:
    project = '[project]\nname = "a"\nversion = "1"\n[dependency-groups]\ndev = ["pytest"]\n'
    write(bench, "pyproject.toml", project)
    done = bench.run("import", "pyproject.toml")
    assert "the group dev was left out: pytest" in done.stderr
    assert "- pytest" not in done.stdout
    assert "- pytest\n" in bench.run("import", "pyproject.toml", "--group", "dev").stdout


def test_json(bench: Bench) -> None:
    write(bench, "requirements.txt", f"{CUDA}-e ./ours\n")
    done = bench.run("import", "requirements.txt", "--output-format", "json")
    document = json.loads(done.stdout)
    assert document["version"] == 1
    assert document["wrote"] is None
    assert document["files"] == [
        {
            "file": "requirements.txt",
            "format": "requirements file",
            "packages": 2,
            "settings": [["cuda"]],
        }
    ]
    first = {"requirement": "torch==2.0.1", "index": None}
    at = {"file": "requirements.txt", "line": 1, "column": 1}
    assert document["packages"][0] == first | at
    assert document["settings"] == [{"route": ["cuda"], "value": "11.8", **at}]
    assert [part["line"] for part in document["leftovers"]] == [3]
    assert document["assumptions"]["gpu"]["value"] == "T4"
    assert done.stderr == ""


def test_what_a_notebook_imports_and_nothing_installs_is_listed(bench: Bench) -> None:
    cells = [
        "%pip install torch==2.11.0",
        "import torch, numpy, cv2\nimport xgboost as xgb\nimport ours",
    ]
    notebook = {
        "nbformat": 4,
        "nbformat_minor": 4,
        "metadata": {},
        "cells": [
            {
                "cell_type": "code",
                "metadata": {},
                "execution_count": None,
                "outputs": [],
                "source": source,
            }
            for source in cells
        ],
    }
    write(bench, "train.ipynb", json.dumps(notebook))
    done = bench.run("import", "train.ipynb", "-o", "spec.yaml", "--output-format", "json")
    assert done.returncode == 0, done.stderr
    left = json.loads(done.stdout)["leftovers"]
    assert [part["message"] for part in left] == [
        "cv2 is imported, but no cell installs opencv-python",
        "xgboost is imported, but no cell installs xgboost",
    ]


def test_no_credential_is_printed(bench: Bench) -> None:
    lines = "--index-url https://me:s3cr3t@packages.example.org/simple\nours==1.0\n"
    write(bench, "requirements.txt", lines)
    for options in ((), ("--output-format", "json")):
        done = bench.run("import", "requirements.txt", *options)
        assert "s3cr3t" not in done.stdout + done.stderr
        assert "packages.example.org" in done.stdout


def test_foreign_text_is_harmless(bench: Bench) -> None:
    write(bench, "requirements.txt", "numpy\n\x1b[31mred\n")
    done = bench.run("import", "requirements.txt")
    assert "\x1b" not in done.stdout + done.stderr


def test_the_exported_lock_is_imported_as_the_same_packages(bench: Bench, tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    made = (
        make_wheel(wheels, "alpha", "1.2", requires=("beta>=2",)),
        make_wheel(wheels, "beta", "2.1"),
        make_wheel(wheels, "gamma", "0.3"),
    )
    index = make_index(tmp_path / "simple", made)
    bench.spec(small_spec("alpha", "gamma<1"))
    locked = bench.run("lock", "spec.yaml", PROVISION_INDEX_PYPI=index)
    assert locked.returncode == 0, locked.stderr
    exported = bench.run("export", "spec.yaml", "--format", "requirements")
    assert exported.returncode == 0, exported.stderr
    write(bench, "requirements.txt", exported.stdout)
    done = bench.run("import", "requirements.txt", "--output-format", "json")
    packages = {
        package["requirement"].partition(";")[0] for package in json.loads(done.stdout)["packages"]
    }
    assert packages == {"alpha==1.2", "beta==2.1", "gamma==0.3"}


def test_a_lock_exports_what_its_import_makes_again(bench: Bench, tmp_path: Path) -> None:
    """The lock of an imported spec, exported and imported again, locks the same packages."""
    wheels = tmp_path / "wheels"
    made = (
        make_wheel(wheels, "alpha", "1.2", requires=("beta>=2",)),
        make_wheel(wheels, "alpha", "1.3", requires=("beta>=2",)),
        make_wheel(wheels, "beta", "2.1"),
        make_wheel(wheels, "beta", "2.2"),
    )
    index = make_index(tmp_path / "simple", made)
    write(bench, "requirements.txt", "alpha<1.3\n")
    versions = []
    for name in ("first", "second"):
        assert bench.run("import", "requirements.txt", "-o", f"{name}.yaml").returncode == 0
        locked = bench.run("lock", f"{name}.yaml", PROVISION_INDEX_PYPI=index)
        assert locked.returncode == 0, locked.stderr
        exported = bench.run("export", f"{name}.yaml", "--format", "requirements")
        write(bench, "requirements.txt", exported.stdout)
        lines = (line.split() for line in exported.stdout.splitlines())
        versions.append({words[0] for words in lines if words and "==" in words[0]})
    assert versions == [{"alpha==1.2", "beta==2.2"}] * 2


def test_init_from_a_file_writes_the_schema_too(bench: Bench) -> None:
    write(bench, "requirements.txt", "numpy==2.0.1\n")
    done = bench.run("init", "--from", "requirements.txt")
    assert done.returncode == 0, done.stderr
    text = (bench.folder / "provision.yaml").read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=provision.schema.json\n")
    assert "  - numpy==2.0.1\n" in text
    assert (bench.folder / "provision.schema.json").exists()
    assert "already exists" in bench.run("init", "--from", "requirements.txt").stderr


def test_init_names_the_files_that_it_could_import(bench: Bench) -> None:
    write(bench, "requirements.txt", "numpy\n")
    write(bench, "notes.txt", "numpy\n")
    done = bench.run("init")
    assert done.returncode == 0
    assert done.stderr == (
        "to take the packages from the files in this folder: provision init provision.yaml --force "
        "--from requirements.txt\n"
    )
    empty = bench.run("init", "elsewhere/spec.yaml")
    assert (empty.returncode, empty.stderr) == (0, "")


@pytest.mark.parametrize(("command", "code"), [("lint", 1), ("plan", 2)])
def test_commands_that_need_a_spec_name_check_and_this_one(
    bench: Bench, command: str, code: int
) -> None:
    write(bench, "requirements.txt", "numpy\n")
    done = bench.run(command, "requirements.txt")
    assert done.returncode == code
    assert "`provision check requirements.txt`" in done.stderr
    assert "`provision import requirements.txt`" in done.stderr
    write(bench, "our notes.md", "numpy\n")
    assert "provision import" not in bench.run(command, "our notes.md").stderr


def test_a_freeze_pins_what_a_requirements_file_lists(bench: Bench) -> None:
    write(bench, "requirements.txt", "numpy>=1.26\nscipy\n")
    write(bench, "freeze.txt", "numpy==2.0.1\npackaging==26.0\n")
    both = bench.run("import", "freeze.txt", "requirements.txt")
    assert both.returncode == 0
    assert "packages:\n  - numpy==2.0.1\n  - scipy\n" in both.stdout
    assert "freeze.txt:2:1: packaging: left out, because no other file lists them" in both.stderr
    assert (
        "freeze.txt:1:1: scipy: no exact version, because this file does not list them"
        in both.stderr
    )
    alone = bench.run("import", "freeze.txt")
    assert "packages:\n  - numpy==2.0.1\n  - packaging==26.0\n" in alone.stdout
    write(bench, "requirements.txt", "numpy>=2.1\nscipy\n")
    conflict = bench.run("import", "requirements.txt", "freeze.txt")
    assert conflict.returncode == 1
    assert "numpy==2.0.1 and numpy>=2.1 exclude each other" in conflict.stderr


def test_a_file_that_is_imported_too_is_not_listed_as_missing(bench: Bench) -> None:
    write(bench, "Dockerfile", "FROM python:3.12\nCOPY requirements.txt /app/\n")
    write(bench, "requirements.txt", "numpy\n")
    assert "requirements.txt were not read" in bench.run("import", "Dockerfile").stderr
    done = bench.run("import", "Dockerfile", "requirements.txt")
    assert done.returncode == 0
    assert "not read" not in done.stderr


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("hg+https://example.com/x/trl@v0.29.0#egg=trl", "trl is not imported", "trl==0.29.0;"),
        ("git+https://example.com/x/trl@v0.29.0", "`git+https://example.com", "NAME==0.29.0;"),
        ("https://example.com/a-1.0-py3-none-any.whl", "a is not imported", "a==1.0;"),
    ],
)
def test_packages_from_repositories_and_urls_are_listed(
    bench: Bench, line: str, message: str, hint: str
) -> None:
    write(bench, "requirements.txt", f"numpy\n{line}\n")
    done = bench.run("import", "requirements.txt")
    assert done.returncode == 0
    assert f"requirements.txt:2:1: {message}" in done.stderr
    assert hint in done.stderr
    assert "otherwise add it with its `path` or `git`" in " ".join(done.stderr.split())
