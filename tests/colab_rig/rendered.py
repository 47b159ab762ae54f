"""What `provision render` wrote, read without the code that wrote it, and notebooks as another lock
or another hand would have made them.
"""

from __future__ import annotations

import ast
import base64
import copy
import hashlib
import io
import json
import lzma
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Rendered:
    """The two files of a target."""

    cell: Path
    notebook: Path

    @property
    def about(self) -> dict[str, Any]:
        """The document that stands in the cell's text."""
        return _about(self.cell.read_text(encoding="utf-8"))[0]

    @property
    def members(self) -> dict[str, bytes]:
        """What the payload holds, by name."""
        content = lzma.decompress(base64.b85decode("".join(self.about["payload"])))
        assert hashlib.sha256(content).hexdigest() == self.about["payload_sha256"]
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return {name: archive.read(name) for name in archive.namelist()}

    @property
    def document(self) -> dict[str, Any]:
        """What the cell is told."""
        found: dict[str, Any] = json.loads(self.members["document.json"])
        return found

    def edited(self, folder: Path, edit: Callable[[str], str]) -> Rendered:
        """Return a copy whose first cell was edited by hand."""
        text = edit(self.cell.read_text(encoding="utf-8"))
        content = json.loads(self.notebook.read_text(encoding="utf-8"))
        _first(content)["source"] = text
        return _written(folder, text, content)

    def otherwise(self, folder: Path, change: Callable[[dict[str, Any]], None]) -> Rendered:
        """Return a copy that was made with another document: whole, with digests that fit."""
        document = copy.deepcopy(self.document)
        change(document)
        payload = _zipped(
            {**self.members, "document.json": json.dumps(document, sort_keys=True).encode()}
        )
        lines = base64.b85encode(lzma.compress(payload)).decode()
        sha256 = hashlib.sha256(payload).hexdigest()
        content = json.loads(self.notebook.read_text(encoding="utf-8"))
        for cell in content["cells"]:
            text = "".join(cell["source"])
            if cell["cell_type"] == "code" and "\nABOUT = {" in text:
                cell["source"] = _with(
                    text,
                    sha256,
                    [lines[start : start + 120] for start in range(0, len(lines), 120)],
                )
        return _written(folder, _first(content)["source"], content)


def _about(text: str) -> tuple[dict[str, Any], int, int]:
    """Return the document in a text, and the lines that it stands on."""
    for node in ast.parse(text).body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id == "ABOUT"
        ):
            return dict(ast.literal_eval(node.value)), node.lineno - 1, node.end_lineno or 0
    raise AssertionError("there is no ABOUT in the text")


def _with(text: str, sha256: str, lines: list[str]) -> str:
    about, first, end = _about(text)
    about["payload_sha256"] = sha256
    if "payload" in about:
        about["payload"] = lines
    every = text.split("\n")
    return "\n".join([*every[:first], f"ABOUT = {about!r}", *every[end:]])


def _first(content: dict[str, Any]) -> Any:
    return next(cell for cell in content["cells"] if cell["cell_type"] == "code")


def _written(folder: Path, text: str, content: dict[str, Any]) -> Rendered:
    folder.mkdir(parents=True, exist_ok=True)
    made = Rendered(folder / "changed.colab.py", folder / "changed.ipynb")
    made.cell.write_text(text, encoding="utf-8")
    made.notebook.write_text(json.dumps(content), encoding="utf-8")
    return made


def _zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in members:
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            archive.writestr(entry, members[name])
    return buffer.getvalue()
