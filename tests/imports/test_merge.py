"""The specs that follow from imported files: one per case, of one file or of several.

`UPDATE_GOLDEN=1` rewrites spec.yaml and leftovers.txt of the cases; read the diff.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement

from provision import source
from provision.adapters.system import RealSystem
from provision.diagnostics import Position, RouteLocation, Span
from provision.errors import SourceError
from provision.imports.merge import merge_files
from provision.imports.model import (
    ImportedFile,
    ImportedPackage,
    ImportedProject,
    Setting,
    SourceText,
)
from provision.imports.read import read_files
from provision.imports.spec_text import STARTER_PYTHON, WrittenSpec, write_spec
from provision.spec import Spec

CASES = Path(__file__).parent / "cases"
MAIN = ("requirements.txt", "pyproject.toml")
AT = Span("requirements.txt", Position(1, 1, 0), Position(1, 6, 5))


class TextReader:
    """A reader of one file that is not on disk."""

    def __init__(self, text: str) -> None:
        self.text = text

    def read(self, _path: Path, _limit: int) -> bytes:
        return self.text.encode()

    def exists(self, _path: Path) -> bool:
        return False


def load(text: str) -> tuple[source.Source, Spec]:
    """Return the spec in a text, which must have no errors of text or schema."""
    (document,) = source.read_spec_file(Path("spec.yaml"), TextReader(text))  # type: ignore[arg-type]
    spec, problems = source.validate_source(document)
    assert (document.diagnostics, problems) == ((), ()), text
    assert spec is not None
    return document, spec


def import_case(case: Path, folder: Path) -> tuple[ImportedProject, WrittenSpec]:
    shutil.copytree(case / "input", folder)
    (folder / "provision.toml").touch()
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    names.remove("provision.toml")
    if not case.name.startswith("merge-"):
        names = ([name for name in names if name in MAIN] or names)[:1]
    project = merge_files(read_files([folder / name for name in names], RealSystem()))
    return project, write_spec(project)


def describe(project: ImportedProject) -> str:
    lines = []
    for part in project.leftovers:
        texts = (part.message, part.why, part.help)
        where = f"{part.span.file}:{part.span.start.line}"
        lines.append(f"{where}: " + " | ".join(filter(None, texts)))
    for conflict in project.conflicts:
        where, other = conflict.where, conflict.other
        lines.append(
            f"{where.file}:{where.start.line}, {other.file}:{other.start.line}: {conflict.message}"
        )
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize("name", sorted(path.name for path in CASES.iterdir()))
def test_a_case_makes_this_spec(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    try:
        project, written = import_case(CASES / name, folder)
    except SourceError:
        return  # the message is in expected.json
    document, _ = load(written.text)
    assert document.tree is not None
    for route, span in written.spans.items():
        assert document.tree.find(route) is not None, route
        assert span.file in project.texts
    texts = {"spec.yaml": written.text, "leftovers.txt": describe(project)}
    for file, text in texts.items():
        actual = text.replace(f"{folder}/", "").replace(str(tmp_path), "ROOT")
        path = CASES / name / file
        if os.environ.get("UPDATE_GOLDEN"):
            path.write_text(actual, encoding="utf-8")
        assert actual == path.read_text(encoding="utf-8")


def project_of(*lines: str, settings: tuple[Setting, ...] = (), **file: bool) -> ImportedProject:
    packages = tuple(
        ImportedPackage(Requirement(line).name, line, AT, is_exact=bool(file.get("is_resolved")))
        for line in lines
    )
    texts = {AT.file: SourceText(AT.file, "numpy", AT.file)}
    return merge_files([ImportedFile("requirements file", texts, packages, settings, **file)])


@given(
    st.dictionaries(st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_]{0,8}\Z"), st.text(max_size=12)),
    st.text(max_size=8),
)
def test_what_is_written_is_read_back(variables: dict[str, str], label: str) -> None:
    settings = tuple(Setting(("env", name), value, AT) for name, value in variables.items())
    project = project_of("numpy==1.0", settings=settings)
    kept = {str(one.route[1]): one.value for one in project.settings}
    encodable = all(text.isprintable() for text in (*kept.values(), label))
    targets = {"here": {"kind": "local", "paths": {"A": label or "/tmp"}}}
    written = write_spec(project, targets if encodable else None)
    document, _ = load(written.text)
    assert document.data is not None
    assert document.data.get("env", {}) == kept
    if encodable:
        assert document.data["targets"] == targets


@pytest.mark.parametrize(
    "line",
    [
        "numpy==1.0",
        "a-b>=1,<2,!=1.5",
        "x[b,a]~=2.0",
        "y==1.*",
        "z; os_name == 'a #b'",
        "on",
        "null",
    ],
)
def test_a_requirement_is_read_back(line: str) -> None:
    _, spec = load(write_spec(project_of(line)).text)
    assert [package.name for package in spec.packages] == [Requirement(line).name]


@pytest.mark.parametrize(
    ("lines", "merged"),
    [
        (("transformers>=5.0", "transformers>=5.0"), "transformers>=5.0"),
        (("transformers>=4.40,<6", "transformers>=4.5"), "transformers>=4.40,<6"),
        (("transformers>4.40", "transformers>=4.50"), "transformers>=4.50,>4.40"),
    ],
)
def test_each_bound_of_several_lines_is_written_once(lines: tuple[str, ...], merged: str) -> None:
    assert [package.requirement for package in project_of(*lines).packages] == [merged]


def test_a_package_without_a_python_of_the_starter_gets_the_nearest() -> None:
    written = write_spec(project_of("torch==1.12.1"))
    assert 'python: "3.10" # no file names a Python version; torch has wheels' in written.text


def test_targets_decide_the_python_that_no_file_names() -> None:
    targets = {"colab": {"kind": "colab", "runtime": "2026.07", "gpu": "T4"}}
    document, spec = load(write_spec(project_of("numpy==1.0"), targets).text)
    assert (spec.python, str(spec.gpu)) == ("3.12", "T4")
    assert document.data is not None
    assert document.data["targets"] == targets


def test_the_gpu_of_the_caller_wins() -> None:
    settings = (Setting(("gpu",), "T4", AT),)
    written = write_spec(project_of("numpy==1.0", settings=settings), gpu="L4:2")
    assert str(load(written.text)[1].gpu) == "L4:2"
    assert ("gpu",) not in written.spans


def test_a_freeze_loses_the_packages_of_torchs_build_and_keeps_its_cuda() -> None:
    lines = ("torch==2.6.0", "nvidia-cuda-runtime-cu12==12.4.127", "triton==3.2.0", "six==1.16.0")
    project = project_of(*lines, is_resolved=True)
    assert [package.name for package in project.packages] == ["torch", "six"]
    assert [(one.route, one.value) for one in project.settings] == [(("cuda",), "12.4")]
    assert "nvidia-cuda-runtime-cu12, triton: left out" in project.leftovers[0].message
    assert "gpu: T4 # no file names the GPU" in write_spec(project).text


def test_cuda_packages_without_torch_are_kept() -> None:
    project = project_of("nvidia-nccl-cu12==2.20.5", "jax==0.5.3", is_resolved=True)
    assert [package.name for package in project.packages] == ["nvidia-nccl-cu12", "jax"]


def test_what_a_spec_cannot_contain_is_a_leftover() -> None:
    settings = (
        Setting(("python",), "2.7", AT),
        Setting(("env", "PATH"), "/bin", AT),
        Setting(("env", "OK"), "1", AT),
        Setting(("system_packages", 0), "No Package", AT),
        Setting(("nonsense", "here"), "1", AT),
    )
    project = project_of("numpy==1.0", settings=settings)
    _, spec = load(write_spec(project).text)
    assert spec.env == {"OK": "1"}
    assert [part.message for part in project.leftovers] == [
        "python: 2.7 was left out",
        "env.PATH: /bin was left out",
        "nonsense.here: 1 was left out",
        "system_packages.0: No Package was left out",
    ]
    assert all(part.why for part in project.leftovers)


def test_the_starter_has_the_same_python() -> None:
    template = Path(__file__).parents[2] / "templates/spec.yaml"
    assert f'python: "{STARTER_PYTHON}"' in template.read_text(encoding="utf-8")


def test_spans_lead_to_the_lines(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text("six==1.16.0\ntorch==2.0.1+cu118\n")
    written = write_spec(merge_files(read_files([path], RealSystem())))
    assert written.spans["packages", 1].start.line == 2
    assert written.spans["cuda",].start.line == 2
    assert ("python",) not in written.spans
    document, _ = load(written.text)
    assert document.span(RouteLocation(("packages", 1))).start.line > 2


@pytest.mark.parametrize(
    ("targets", "is_written"),
    [
        ({"env": {"kind": "local", "manager": "conda"}}, True),
        ({"env": {"kind": "local", "manager": "conda"}, "c": {"kind": "colab"}}, True),
        ({"env": {"kind": "local"}}, False),
        ({"moon": {"kind": "moon"}}, False),
    ],
)
def test_packages_of_conda_are_written_or_left_over(
    targets: dict[str, dict[str, str]], *, is_written: bool
) -> None:
    ffmpeg = ImportedPackage("ffmpeg", "ffmpeg>=6", AT, manager="conda")
    texts = {AT.file: SourceText(AT.file, "ffmpeg", AT.file)}
    project = merge_files([ImportedFile("conda environment", texts, (ffmpeg,))])
    written = write_spec(project, targets, gpu="none")
    assert ("conda_packages:\n  - ffmpeg>=6\n" in written.text) == is_written
    messages = [leftover.message for leftover in written.leftovers]
    assert messages == ([] if is_written else ["ffmpeg: left out"])
    if is_written:
        load(written.text)
