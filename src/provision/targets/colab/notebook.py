"""The notebook: its metadata and cells. Cells that people add stay when it is rendered again.

A copy of a rendered cell has the id of the original: Colab and JupyterLab copy a cell with its
metadata. A cell therefore carries the digest of what was rendered, which distinguishes an edited
copy from the cell itself.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from provision.kinds import ColabTarget
from provision.sanitize import escape_line
from provision.targets.colab.cell import is_same_cell

ABOUT_CELL, ENVIRONMENT_CELL, VERIFY_CELL, RUN_CELL, USER_CELL = (
    "provision-about",
    "provision-environment",
    "provision-verify",
    "provision-run",
    "provision-yours",
)
_CELL_IDS = (ABOUT_CELL, ENVIRONMENT_CELL, VERIFY_CELL, RUN_CELL, USER_CELL)
_DIGEST = "provision_sha256"
_USER_CELL_TEXT = "# Your code here. It can import everything that the first cell installed.\n"
_USER_CELL_TEXT_VENV = (
    "# Your code here. It runs in this notebook's own Python; the cell above runs scripts in "
    "the environment.\n"
)
_UNEDITED_USER_CELLS = (
    "",
    _USER_CELL_TEXT.rstrip(),
    _USER_CELL_TEXT_VENV.rstrip(),
    "# Your code here: it imports the packages that the cells above installed.",
)
"""Texts of the empty cell, the last one up to version 0.1."""


def build_metadata(target: ColabTarget, machine: Mapping[str, str]) -> dict[str, Any]:
    """Return the metadata that requests a machine of Colab; `machine` is its metadata.

    Colab may still open the notebook on another machine.
    """
    colab: dict[str, Any] = {
        "provenance": [],
        **{key: machine[key] for key in ("gpuType", "machine_shape") if key in machine},
    }
    if target.runtime != "latest":
        colab["runtime_attributes"] = {"runtime_version": target.runtime}
    accelerator = {"accelerator": machine["accelerator"]} if "accelerator" in machine else {}
    return {
        **accelerator,
        "colab": colab,
        "kernelspec": {"display_name": "Python 3", "name": "python3"},
        "language_info": {"name": "python"},
    }


def build_notebook(
    metadata: Mapping[str, Any], about: str, texts: Mapping[str, str]
) -> dict[str, Any]:
    """Return the notebook (nbformat 4.5): a description, our cells by id, and an empty cell."""
    own = _USER_CELL_TEXT_VENV if RUN_CELL in texts else _USER_CELL_TEXT
    cells = [
        _cell(ABOUT_CELL, about, "markdown"),
        *(_cell(name, text, "code", form=True) for name, text in texts.items()),
        _cell(USER_CELL, own, "code"),
    ]
    return {"cells": cells, "metadata": dict(metadata), "nbformat": 4, "nbformat_minor": 5}


def format_markdown(lines: Mapping[str, str], title: str, introduction: str) -> str:
    """Return Markdown: a title, a sentence and a list, whose values are formatted as code."""
    return "\n".join(
        [
            f"## {title}",
            "",
            introduction,
            "",
            *(f"- {name}: {format_code(value)}" for name, value in lines.items()),
        ]
    )


def format_code(text: str) -> str:
    """Return text as code in Markdown, whatever characters it contains."""
    line = escape_line(text)
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    blank = " " if line.startswith(("`", " ")) or line.endswith(("`", " ")) else ""
    return f"{fence}{blank}{line}{blank}{fence}"


def dumps(notebook: Mapping[str, Any]) -> str:
    """Return the notebook's text in Jupyter's layout.

    Lone surrogates, which cannot be encoded, stay escaped.
    """
    text = json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    return re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", text)


def is_rendered_notebook(document: Any) -> bool:
    """Return whether a document is a notebook with our cell."""
    return any(_name(cell) == ENVIRONMENT_CELL for cell in _cells(document))


def update_notebook(existing: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """Return the notebook as it should be now.

    Cells that people added, or copied and edited, stay, and so do the results of unchanged cells.
    """
    rendered, others, _ = _sort_cells(existing, ours)
    # A user who removed the empty cell and added others does not need it.
    is_removed = bool(others) and USER_CELL not in rendered
    cells = [
        _choose_cell(rendered.get(_name(cell)), cell)
        for cell in ours["cells"]
        if _name(cell) != USER_CELL or not is_removed
    ]
    minor = existing.get("nbformat_minor", 5)
    if minor < 5:  # such cells have no id
        cells = [{key: value for key, value in cell.items() if key != "id"} for cell in cells]
    return {
        **existing,
        "cells": [*cells, *others],
        "metadata": _update_metadata(_mapping(existing, "metadata"), ours["metadata"]),
    }


def find_edited_copies(existing: Any, ours: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the rendered cells of which a notebook has an edited copy."""
    return _sort_cells(existing, ours)[2]


def _sort_cells(
    existing: Any, ours: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Any], tuple[str, ...]]:
    """Return the rendered cells by name, people's cells, and the names with edited copies."""
    current = {_name(cell): cell for cell in ours["cells"]}
    cells = _cells(existing)
    rendered = {}
    for name in _CELL_IDS:
        copies = [cell for cell in cells if _name(cell) == name]
        if copies:
            rendered[name] = _original(copies, current.get(name))
    others, edited = list[Any](), list[str]()
    for cell in cells:
        name = _name(cell)
        if name not in rendered:
            others.append(cell)
        elif cell is not rendered[name] and not _is_rendered(
            cell, rendered[name], current.get(name)
        ):
            others.append(_as_user_cell(cell, {*map(_name, cells), *map(_name, others)}))
            edited.append(name)
    return rendered, others, tuple(edited)


def _original(cells: list[Any], ours: Mapping[str, Any] | None) -> Any:
    """Return the rendered cell among cells with the same name.

    It is the cell that is up to date, else the one that is unchanged since it was rendered, else
    the one with that id, else the first.
    """
    if len(cells) == 1:
        return cells[0]
    current = (
        cell for cell in cells if ours is not None and is_same_cell(_source(cell), _source(ours))
    )
    earlier = (cell for cell in cells if _digest(cell) == _mapping(cell, "metadata").get(_DIGEST))
    by_id = (cell for cell in cells if cell.get("id") in _CELL_IDS)
    return next(current, None) or next(earlier, None) or next(by_id, cells[0])


def _is_rendered(
    copy: Mapping[str, Any], original: Mapping[str, Any], ours: Mapping[str, Any] | None
) -> bool:
    """Return whether a copy contains no edit by a person."""
    if _name(copy) == USER_CELL:
        return _source(copy) in _UNEDITED_USER_CELLS
    if _digest(copy) == _mapping(copy, "metadata").get(_DIGEST) or _source(copy) == _source(
        original
    ):
        return True
    return ours is not None and is_same_cell(_source(copy), _source(ours))


def _as_user_cell(copy: Mapping[str, Any], taken: set[str]) -> dict[str, Any]:
    """Return an edited copy as a person's cell, with an unused id."""
    stem = name = f"{_name(copy)}-copy-{_digest(copy)[:8]}"
    number = 1
    while name in taken:
        number += 1
        name = f"{stem}-{number}"
    metadata = {key: value for key, value in _mapping(copy, "metadata").items() if key != _DIGEST}
    own = {"id": name} if copy.get("id") in _CELL_IDS else {}
    return {**copy, **own, "metadata": {**metadata, "id": name}}


def _digest(cell: Mapping[str, Any]) -> str:
    return hashlib.sha256(_source(cell).encode("utf-8", "surrogatepass")).hexdigest()


def _update_metadata(existing: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    colab = {
        key: value
        for key, value in _mapping(existing, "colab").items()
        if key not in ("gpuType", "machine_shape", "runtime_attributes")
    }
    kept = {key: value for key, value in existing.items() if key != "accelerator"}
    return {**ours, **kept, "colab": {**ours["colab"], **colab}}


def _cell(name: str, text: str, kind: str, *, form: bool = False) -> dict[str, Any]:
    # Colab shows such a cell as a form, and JupyterLab collapses it, which hides the payload.
    metadata: dict[str, Any] = {
        "id": name,
        **({"cellView": "form", "jupyter": {"source_hidden": True}} if form else {}),
    }
    lines = text.rstrip("\n").split("\n")
    cell = {
        "cell_type": kind,
        "id": name,
        "metadata": metadata,
        "source": [*(f"{line}\n" for line in lines[:-1]), lines[-1]],
    }
    metadata[_DIGEST] = _digest(cell)
    return cell if kind == "markdown" else {**cell, "execution_count": None, "outputs": []}


def _choose_cell(existing: Mapping[str, Any] | None, ours: Mapping[str, Any]) -> Mapping[str, Any]:
    if existing is None or (
        _name(ours) != USER_CELL and not is_same_cell(_source(existing), _source(ours))
    ):
        return ours
    return existing


def _cells(document: Any) -> list[Any]:
    cells = document.get("cells") if isinstance(document, Mapping) else None
    return [cell for cell in cells if isinstance(cell, Mapping)] if isinstance(cells, list) else []


def _name(cell: Mapping[str, Any]) -> str:
    # Colab writes format 4.0, in which a cell's id is in its metadata.
    name = cell.get("id")
    return str(name if name in _CELL_IDS else _mapping(cell, "metadata").get("id", ""))


def _mapping(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = document.get(key)
    return value if isinstance(value, Mapping) else {}


def _source(cell: Mapping[str, Any]) -> str:
    source = cell.get("source", "")
    return (
        "".join(str(line) for line in source) if isinstance(source, list) else str(source)
    ).rstrip("\n")
