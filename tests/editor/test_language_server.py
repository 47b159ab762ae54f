"""The schema in a real editor's language server: it marks what our linter marks, offers known
values, and shows our words.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import fork_server
from tests.editor.client import Editor
from tests.support import require

pytestmark = pytest.mark.npm

ROOT = Path(__file__).parent.parent.parent
SERVER = ROOT / ".cache/npm/node_modules/yaml-language-server/bin/yaml-language-server"


def started(folder: Path, schema: Path | None) -> Editor:
    """The language server, or a skip with the reason."""
    node = shutil.which("node")
    require(
        "npm",
        node is not None and SERVER.exists(),
        "Node.js or the yaml-language-server that .ci/run installs is not here",
    )
    return Editor(node or "node", SERVER, folder, schema)


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory, schema_text: str) -> Iterator[Editor]:
    """A language server that has our schema for every spec."""
    folder = tmp_path_factory.mktemp("editor")
    (folder / "spec.schema.json").write_text(schema_text)
    with started(folder, folder / "spec.schema.json") as running:
        yield running


def linted(folder: Path, text: str) -> set[tuple[int, int, int, int]]:
    """The places that our own linter points at, from 0 as editors count: first line, character,
    last line, character.
    """
    (folder / "spec.yaml").write_text(text)
    done = fork_server.run(
        [*fork_server.ARGV, "lint", "spec.yaml", "--output-format", "json"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
    )
    ranges = [found["range"] for found in json.loads(done.stdout)["diagnostics"]]
    return {
        (
            r["start"]["line"] - 1,
            r["start"]["column"] - 1,
            r["end"]["line"] - 1,
            r["end"]["column"] - 1,
        )
        for r in ranges
    }


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("name", "text", "marked"),
    [
        ("python.yaml", "gpu: none\npython: 3.10\npackages: [torch]\n", "3.10"),
        (
            "cuda.yaml",
            'gpu: L4\npython: "3.12"\ncuda:   12.8   # words\npackages: [torch]\n',
            "12.8",
        ),
        (
            "nested.yaml",
            'gpu: L4\npython: "3.12"\npackages: [torch]\ntraining:\n  batch_size: many\n',
            "many",
        ),
        ("key.yaml", 'gpu: L4\npython: "3.12"\npackages: [torch]\ncolour: blue\n', "colour"),
        (
            "choice.yaml",
            (
                'gpu: L4\npython: "3.12"\npackages: [torch]\ntraining: {framework: torch, '
                "precision: int4}\n"
            ),
            "int4",
        ),
        (
            "letters.yaml",
            (
                'gpu: L4 # h\u00e9, \u65e5\u672c\npython: "3.12"\nenv: {"\u00e9": '
                "x}\npackages: [torch]\ntraining: {precision: int4}\n"
            ),
            "int4",
        ),
    ],
)
def test_it_marks_the_characters_that_our_linter_marks(
    editor: Editor, tmp_path: Path, name: str, text: str, marked: str
) -> None:
    found = {
        tuple(p["range"][end][part] for end in ("start", "end") for part in ("line", "character"))
        for p in editor.problems(name, text)
    }
    line = next(number for number, line in enumerate(text.splitlines()) if marked in line)
    start = text.splitlines()[line].index(marked)
    assert (line, start, line, start + len(marked)) in found
    assert (line, start, line, start + len(marked)) in linted(tmp_path, text)


@pytest.mark.parametrize(
    "path",
    [*sorted((ROOT / "specs").glob("*.yaml")), ROOT / "templates/spec.yaml"],
    ids=lambda path: path.name,
)
def test_our_own_specs_have_no_marks(editor: Editor, path: Path) -> None:
    # Without its first line: that names a schema by its place in the repository.
    text = "".join(line for line in path.read_text().splitlines(True) if "$schema=" not in line)
    assert editor.problems(f"own-{path.name}", text) == []


def test_known_values_are_offered(editor: Editor) -> None:
    editor.problems("values.yaml", "gpu: \npython: \ncuda: \npackages: [torch]\n")
    labels = [
        {item["label"].strip('"') for item in editor.completions("values.yaml", line, len(key) + 2)}
        for line, key in enumerate(("gpu", "python", "cuda"))
    ]
    assert {"L4", "none", "A100-80GB"} <= labels[0]
    assert {"3.11", "3.12"} <= labels[1]
    assert {"auto", "12.8"} <= labels[2]


def test_a_completed_python_version_is_one_we_take(editor: Editor, tmp_path: Path) -> None:
    before = "gpu: none\npython: "
    editor.problems("completed.yaml", before + "\npackages: [numpy]\n")
    (item,) = [
        item
        for item in editor.completions("completed.yaml", 1, len("python: "))
        if item["label"].strip('"') == "3.10"
    ]
    new = item["textEdit"]["newText"] if "textEdit" in item else item["insertText"]
    assert new.strip() == '"3.10"', "a completion without quotes would be the number 3.1"
    assert (
        linted(
            tmp_path, before + new.strip() + "\npackages: [numpy]\ntraining: {framework: none}\n"
        )
        == set()
    )


def test_field_names_are_offered(editor: Editor, schema: dict[str, object]) -> None:
    editor.problems("fields.yaml", "gpu: L4\n\ntraining:\n  \n")
    assert {"python", "packages", "env", "targets"} <= {
        item["label"] for item in editor.completions("fields.yaml", 1, 0)
    }
    assert {"framework", "precision", "batch_size"} <= {
        item["label"] for item in editor.completions("fields.yaml", 3, 2)
    }


def test_our_words_are_shown_over_a_field(
    editor: Editor, schema: dict[str, dict[str, dict[str, str]]]
) -> None:
    text = (
        'gpu: L4\npython: "3.12"\npackages: [torch]\ntraining:\n  precision: bf16\nverify: '
        "{tier: quick}\n"
    )
    editor.problems("hover.yaml", text)
    for line, character, words in (
        (0, 1, schema["definitions"]["Gpu"]["description"]),
        (1, 2, schema["properties"]["python"]["description"]),
        (4, 4, schema["definitions"]["Precision"]["description"]),
        (5, 2, schema["definitions"]["Verify"]["description"]),
    ):
        shown = editor.hover("hover.yaml", line, character)
        assert words.split("`")[0].rstrip(" .;") in shown, (line, shown)


def test_the_line_that_init_writes_is_enough_in_a_clone(tmp_path: Path) -> None:
    project, clone = tmp_path / "project", tmp_path / "clone"
    project.mkdir()
    fork_server.run(
        [*fork_server.ARGV, "init"], cwd=project, check=True, capture_output=True, timeout=600
    )
    author = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
    for command in (("init",), ("add", "--all"), (*author, "commit", "--message", "specs")):
        subprocess.run(["git", "-C", project, *command], check=True, capture_output=True)
    subprocess.run(["git", "clone", project, clone], check=True, capture_output=True)
    text = (clone / "provision.yaml").read_text()
    with started(clone, None) as plain:
        assert plain.problems("provision.yaml", text) == []
    wrong = text.replace('python: "3.11"', "python: 3.11")
    assert wrong != text
    with started(clone, None) as plain:
        found = [problem["range"] for problem in plain.problems("provision.yaml", wrong)]
    lines = wrong.splitlines()
    assert {
        lines[at["start"]["line"]][at["start"]["character"] : at["end"]["character"]]
        for at in found
    } == {"3.11"}
