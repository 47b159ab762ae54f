"""Copies of rendered cells, which have the ids of the originals: what a person wrote into one
stays, and nothing is there twice.
"""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable
from typing import Any

import nbformat
import pytest

from provision.facts import load_facts
from provision.targets.colab.rendered_files import RenderedFiles
from provision.targets.colab.rendered_files import render_files as render
from tests.conftest import ROOT
from tests.rig import Bench
from tests.targets.colab_places import place

MAKE, VERIFY = "provision-environment", "provision-verify"
EDIT = "print('my edit')\n"
NAME = "spec.colab.ipynb"
Notebook = dict[str, Any]
Paste = Callable[[dict[str, Any]], dict[str, Any]]


@pytest.fixture(scope="module")
def made() -> RenderedFiles:
    return render(place(), load_facts())


@pytest.fixture(scope="module")
def of_changed_spec() -> RenderedFiles:
    return render(place(env={"A": "b"}), load_facts())


@pytest.fixture(params=[5, 0], ids=["4.5", "4.0"])
def notebook(made: RenderedFiles, request: pytest.FixtureRequest) -> Notebook:
    """A notebook as rendered (nbformat 4.5), or as Colab saves it (4.0, without ids but in the
    metadata).
    """
    document: Notebook = json.loads(made.merge_files({})[NAME])
    if request.param == 0:
        for cell in document["cells"]:
            del cell["id"]
        document["nbformat_minor"] = 0
    return document


def pasted_by_jupyter(cell: dict[str, Any]) -> dict[str, Any]:
    """JupyterLab pastes a copy with an id of its own and the metadata of the original."""
    return {**cell, "id": "0123abcd"} if "id" in cell else cell


def same_ids(cell: dict[str, Any]) -> dict[str, Any]:
    """Who copies in the file itself, or with a tool that knows no ids, leaves the id."""
    return cell


def add_copy(
    document: Notebook, name: str, *, edited: str, paste: Paste = same_ids, before: bool = False
) -> None:
    """Copy the cell of a name, and put an edit into the "copy", the "original" or neither ("")."""
    at = next(
        index for index, cell in enumerate(document["cells"]) if cell["metadata"]["id"] == name
    )
    original = document["cells"][at]
    second = paste(copy.deepcopy(original))
    for cell in {"copy": [second], "original": [original], "": []}[edited]:
        cell["source"] = [EDIT, *cell["source"]]
    document["cells"].insert(at if before else at + 1, second)


def again(made: RenderedFiles, document: Notebook) -> tuple[Notebook, tuple[str, ...]]:
    """Render beside a notebook, see that rendering once more changes nothing, and return the
    notebook and which copies stay.
    """
    there = {NAME: json.dumps(document).encode()}
    content = made.merge_files(there)[NAME]
    assert made.merge_files({NAME: content})[NAME] == content
    assert made.find_edited_copies({NAME: content}) == ()
    found: Notebook = json.loads(content)
    nbformat.validate(found)
    assert len({cell["metadata"]["id"] for cell in found["cells"]}) == len(found["cells"])
    return found, made.find_edited_copies(there)


def texts(document: Notebook) -> list[str]:
    return ["".join(cell["source"]) for cell in document["cells"]]


@pytest.mark.long(after=4)
@pytest.mark.parametrize(
    ("name", "changed"),
    [(MAKE, True), (VERIFY, False), (MAKE, False), (VERIFY, True), ("provision-about", True)],
)
def test_an_unedited_copy_goes(
    made: RenderedFiles,
    of_changed_spec: RenderedFiles,
    notebook: Notebook,
    name: str,
    changed: bool,
) -> None:
    add_copy(notebook, name, edited="")
    found, copies = again(of_changed_spec if changed else made, notebook)
    assert (len(found["cells"]), copies) == (len(notebook["cells"]) - 1, ())


CASES = [
    (paste, edited, before, changed)
    for changed in (True, False)
    for before in (False, True)
    for edited in ("copy", "original")
    for paste in (same_ids, pasted_by_jupyter)
]


@pytest.mark.long(after=4)
@pytest.mark.parametrize(("paste", "edited", "before", "changed"), CASES)
def test_what_was_edited_stays_and_what_was_rendered_is_renewed(
    made: RenderedFiles,
    of_changed_spec: RenderedFiles,
    notebook: Notebook,
    paste: Paste,
    edited: str,
    before: bool,
    changed: bool,
) -> None:
    first = texts(notebook)
    add_copy(notebook, MAKE, edited=edited, paste=paste, before=before)
    found, copies = again(of_changed_spec if changed else made, notebook)
    assert copies == (MAKE,)
    after = texts(found)
    assert len(after) == len(first) + 1
    assert [text for text in after if text.startswith(EDIT)] == [EDIT + first[1]]
    assert (after[1] == first[1]) is not changed


def test_several_copies_with_the_same_edit_stay(made: RenderedFiles, notebook: Notebook) -> None:
    add_copy(notebook, VERIFY, edited="copy")
    add_copy(notebook, VERIFY, edited="copy")
    found, copies = again(made, notebook)
    assert copies == (VERIFY, VERIFY)
    assert sum(text.startswith(EDIT) for text in texts(found)) == 2


def test_a_copy_of_the_cell_for_ones_own_code_stays_with_its_results(
    made: RenderedFiles, notebook: Notebook
) -> None:
    mine = notebook["cells"][-1]
    unused = copy.deepcopy(mine)
    mine["source"] = ["train()"]
    second = {
        **copy.deepcopy(mine),
        "source": ["train(2)"],
        "outputs": [{"output_type": "stream", "name": "stdout", "text": ["ran\n"]}],
    }
    notebook["cells"] += [second, unused]
    found, _ = again(made, notebook)
    assert texts(found)[-2:] == ["train()", "train(2)"]
    assert found["cells"][-1]["outputs"] == second["outputs"]


def test_an_edited_cell_without_a_copy_is_rendered_anew(
    made: RenderedFiles, notebook: Notebook
) -> None:
    first = texts(notebook)
    notebook["cells"][1]["source"] = [EDIT, *notebook["cells"][1]["source"]]
    found, copies = again(made, notebook)
    assert (texts(found), copies) == (first, ())


def test_cells_of_an_earlier_version_carry_no_digest(
    of_changed_spec: RenderedFiles, notebook: Notebook
) -> None:
    for cell in notebook["cells"]:
        del cell["metadata"]["provision_sha256"]
    add_copy(notebook, MAKE, edited="copy")
    found, copies = again(of_changed_spec, notebook)
    assert copies == (MAKE,)
    assert sum(text.startswith(EDIT) for text in texts(found)) == 1


def test_apply_and_render_say_it(bench: Bench) -> None:
    for name in ("spec.yaml", "spec.lock"):
        shutil.copy(ROOT / "tests/golden/lock-restart" / name, bench.folder / name)
    words = ("spec.yaml", "--target", "colab")
    first = bench.run("render", *words)
    assert (first.returncode, "edited copy" in first.stdout) == (0, False)
    document = json.loads((bench.folder / NAME).read_text())
    add_copy(document, MAKE, edited="copy")
    edited = json.dumps(document)
    (bench.folder / NAME).write_text(edited)
    line = f"{NAME}: the edited copy of the cell {MAKE} is kept as a separate cell"
    applied = bench.run("apply", *words, "--yes")
    assert applied.returncode == 3, applied.stderr
    assert line in applied.stderr
    assert (
        sum(text.startswith(EDIT) for text in texts(json.loads((bench.folder / NAME).read_text())))
        == 1
    )
    (bench.folder / NAME).write_text(edited)
    done = bench.run("render", *words, "--output-format", "json")
    assert json.loads(done.stdout)["targets"][0]["copies"] == [MAKE]
