"""The notebook of a Colab target: valid, asks for its machine, keeps what people added; and the
link that opens it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest

from provision.adapters import RealSystem
from provision.facts import Facts, load_facts
from provision.targets.colab.cell import parse_about
from provision.targets.colab.github_link import build_colab_link
from provision.targets.colab.notebook import ENVIRONMENT_CELL, USER_CELL, VERIFY_CELL
from provision.targets.colab.payload import encode_payload
from provision.targets.colab.rendered_files import RenderedFiles, render_files
from tests.targets.colab_places import place

NAME = "spec.colab.ipynb"


@pytest.fixture(scope="module")
def facts() -> Facts:
    return load_facts()


@pytest.fixture(scope="module")
def made(facts: Facts) -> RenderedFiles:
    return render_files(place(), facts)


def written(made: RenderedFiles, there: dict[str, Any] | None = None) -> dict[str, Any]:
    before = {} if there is None else {NAME: json.dumps(there).encode()}
    found: dict[str, Any] = json.loads(made.merge_files(before)[NAME])
    return found


def cell(notebook: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(
        one for one in notebook["cells"] if name in (one.get("id"), one["metadata"].get("id"))
    )
    return found


def as_colab_saves(notebook: dict[str, Any]) -> dict[str, Any]:
    """Format 4.0: no ids but in the metadata; results, and metadata of Colab's own."""
    cells = [{key: value for key, value in one.items() if key != "id"} for one in notebook["cells"]]
    cells = [
        {**one, "outputs": [{"output_type": "stream", "name": "stdout", "text": ["ran\n"]}]}
        if one["cell_type"] == "code"
        else one
        for one in cells
    ]
    metadata = {
        **notebook["metadata"],
        "colab": {**notebook["metadata"]["colab"], "name": NAME, "toc_visible": True},
    }
    return {**notebook, "cells": cells, "metadata": metadata, "nbformat_minor": 0}


OWN = {
    "cell_type": "code",
    "execution_count": 3,
    "metadata": {"id": "x"},
    "outputs": [],
    "source": ["print('mine')"],
}


@pytest.mark.parametrize("target", ["colab", "apart"])
def test_it_is_a_valid_notebook_with_ids_that_stay(target: str, facts: Facts) -> None:
    notebook = (
        written(render_files(place(target), facts))
        if target == "colab"
        else render_files(place(target), facts).notebook
    )
    nbformat.validate(notebook)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    ids = [one["id"] for one in notebook["cells"]]
    assert ids == [
        "provision-about",
        ENVIRONMENT_CELL,
        VERIFY_CELL,
        *(["provision-run"] if target == "apart" else []),
        USER_CELL,
    ]
    assert [one["metadata"]["id"] for one in notebook["cells"]] == ids
    assert notebook["metadata"]["kernelspec"] == {"display_name": "Python 3", "name": "python3"}
    assert cell(notebook, ENVIRONMENT_CELL)["metadata"]["cellView"] == "form"
    assert cell(notebook, ENVIRONMENT_CELL)["metadata"]["jupyter"] == {"source_hidden": True}


def test_its_first_cell_is_the_cell(made: RenderedFiles) -> None:
    assert "".join(cell(written(made), ENVIRONMENT_CELL)["source"]) + "\n" == made.cell


def test_it_says_in_words_what_it_is(made: RenderedFiles) -> None:
    words = "".join(cell(written(made), "provision-about")["source"])
    assert "## Environment `restart`" in words
    assert "`spec.yaml, target colab`" in words
    assert "`provision render spec.yaml --target colab`" in words


def test_what_people_wrote_stays(made: RenderedFiles, facts: Facts) -> None:
    there = written(made)
    cell(there, USER_CELL)["source"] = ["my = 'code'"]
    there["cells"].insert(2, OWN)
    there["metadata"]["widgets"] = {"kept": True}
    fresh = written(render_files(place(env={"A": "b"}), facts), there)
    assert cell(fresh, USER_CELL)["source"] == ["my = 'code'"]
    assert OWN in fresh["cells"]
    assert fresh["metadata"]["widgets"] == {"kept": True}
    assert parse_about("".join(cell(fresh, ENVIRONMENT_CELL)["source"])) != parse_about(
        "".join(cell(there, ENVIRONMENT_CELL)["source"])
    )


def test_a_room_for_ones_own_that_was_removed_stays_removed(made: RenderedFiles) -> None:
    there = written(made)
    there["cells"] = [one for one in there["cells"] if one["id"] != USER_CELL]
    assert USER_CELL in [
        one.get("id") for one in written(made, there)["cells"]
    ]  # nothing else of theirs is there
    there["cells"].append(OWN)
    assert USER_CELL not in [one.get("id") for one in written(made, there)["cells"]]


def test_a_notebook_that_was_run_in_colab_and_saved_is_as_it_should_be(made: RenderedFiles) -> None:
    there = as_colab_saves(written(made))
    there["cells"].append(OWN)
    content = json.dumps(there).encode()
    assert made.merge_files({NAME: content})[NAME] == content


def test_one_that_was_saved_by_colab_is_made_again_in_its_format(
    made: RenderedFiles, facts: Facts
) -> None:
    there = as_colab_saves(written(made))
    fresh = written(render_files(place(env={"A": "b"}, gpu="L4"), facts), there)
    nbformat.validate(fresh)
    assert fresh["nbformat_minor"] == 0
    assert not [one for one in fresh["cells"] if "id" in one]
    assert fresh["metadata"]["colab"] == {
        "gpuType": "L4",
        "machine_shape": "hm",
        "name": NAME,
        "provenance": [],
        "runtime_attributes": {"runtime_version": "2026.07"},
        "toc_visible": True,
    }
    assert cell(fresh, VERIFY_CELL)["outputs"] == []  # what was shown was of another payload


def test_another_machine_is_asked_for_and_the_old_one_no_more(
    made: RenderedFiles, facts: Facts
) -> None:
    fresh = written(
        render_files(place(gpu="none", colab={"runtime": "latest"}), facts), written(made)
    )
    assert "accelerator" not in fresh["metadata"]
    assert fresh["metadata"]["colab"] == {"provenance": []}


def test_a_payload_that_another_machine_compressed_is_no_change(made: RenderedFiles) -> None:
    there = written(made)
    source = "".join(cell(there, ENVIRONMENT_CELL)["source"])
    lines = encode_payload(made.payload)
    other = source.replace(f'"{lines[0]}",\n        "{lines[1]}"', f'"{lines[0]}{lines[1]}"')
    assert other != source
    cell(there, ENVIRONMENT_CELL)["source"] = other.splitlines(keepends=True)
    content = json.dumps(there).encode()
    assert made.merge_files({NAME: content})[NAME] == content


@pytest.mark.parametrize(
    "metadata", [None, [], {"colab": []}, {"colab": None, "accelerator": "TPU"}]
)
def test_metadata_of_a_strange_form_is_put_right(metadata: object, made: RenderedFiles) -> None:
    fresh = written(made, {**written(made), "metadata": metadata})
    assert fresh["metadata"]["colab"]["gpuType"] == "T4"
    assert fresh["metadata"]["accelerator"] == "GPU"


# The link.


def repository(
    folder: Path, url: str = "https://github.com/me/repo.git", head: str = "ref: refs/heads/main\n"
) -> Path:
    git = folder / ".git"
    git.mkdir(parents=True)
    (git / "HEAD").write_text(head)
    (git / "config").write_text(
        f'[core]\n\tbare = false\n[remote "origin"]\n\turl = {url}\n\tfetch = '
        '+refs/heads/*:refs/remotes/origin/*\n[branch "main"]\n\tremote = origin\n'
    )
    return folder


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/me/repo.git",
        "https://github.com/me/repo",
        "https://github.com/me/repo/",
        "git@github.com:me/repo.git",
        "ssh://git@github.com/me/repo.git",
        "https://someone:gone@github.com/me/repo.git",
    ],
)
def test_the_link_names_repository_branch_and_path(url: str, tmp_path: Path) -> None:
    root = repository(tmp_path, url)
    assert (
        build_colab_link(root / "specs/a b.ipynb", RealSystem())
        == "https://colab.research.google.com/github/me/repo/blob/main/specs/a%20b.ipynb"
    )


def test_a_branch_may_have_a_slash_and_other_characters(tmp_path: Path) -> None:
    root = repository(tmp_path, head="ref: refs/heads/feat/a#b\n")
    assert (
        build_colab_link(root / "a.ipynb", RealSystem())
        == "https://colab.research.google.com/github/me/repo/blob/feat/a%23b/a.ipynb"
    )


@pytest.mark.parametrize(
    ("url", "head"),
    [
        ("https://gitlab.com/me/repo.git", "ref: refs/heads/main\n"),
        ("https://github.example.com/me/repo.git", "ref: refs/heads/main\n"),
        ("https://github.com.example.com/me/repo.git", "ref: refs/heads/main\n"),
        ("https://github.com/me", "ref: refs/heads/main\n"),
        ("/srv/git/repo.git", "ref: refs/heads/main\n"),
        ("https://github.com/me/repo.git", "0123456789012345678901234567890123456789\n"),
        ("https://github.com/me/repo.git", "ref: refs/heads/two words\n"),
        ("https://github.com/me/../../x", "ref: refs/heads/main\n"),
    ],
)
def test_there_is_no_link_where_it_would_not_open(url: str, head: str, tmp_path: Path) -> None:
    assert build_colab_link(repository(tmp_path, url, head) / "a.ipynb", RealSystem()) is None


def test_there_is_no_link_outside_a_repository_or_in_a_damaged_one(tmp_path: Path) -> None:
    (tmp_path / "bare/.git").mkdir(parents=True)
    assert build_colab_link(tmp_path / "bare/a.ipynb", RealSystem()) is None
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd/.git").write_text("gitdir: nowhere\n")
    assert build_colab_link(tmp_path / "odd/a.ipynb", RealSystem()) is None
    root = repository(tmp_path / "broken")
    (root / ".git/config").write_bytes(b"\xff\xfe[remote\nurl")
    assert build_colab_link(root / "a.ipynb", RealSystem()) is None


def test_another_remote_counts_where_it_is_the_only_one(tmp_path: Path) -> None:
    root = repository(tmp_path)
    text = (root / ".git/config").read_text().replace('"origin"', '"upstream"')
    (root / ".git/config").write_text(text)
    assert build_colab_link(root / "a.ipynb", RealSystem()) is not None
    (root / ".git/config").write_text(
        text + '[remote "fork"]\n\turl = https://github.com/you/repo.git\n'
    )
    assert build_colab_link(root / "a.ipynb", RealSystem()) is None


def test_a_further_work_tree_has_its_own_branch(tmp_path: Path) -> None:
    root = repository(tmp_path / "first")
    own = root / ".git/worktrees/second"
    own.mkdir(parents=True)
    (own / "HEAD").write_text("ref: refs/heads/second\n")
    (own / "commondir").write_text("../..\n")
    (tmp_path / "second").mkdir()
    (tmp_path / "second/.git").write_text(f"gitdir: {own}\n")
    assert (
        build_colab_link(tmp_path / "second/a.ipynb", RealSystem())
        == "https://colab.research.google.com/github/me/repo/blob/second/a.ipynb"
    )
