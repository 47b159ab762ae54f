"""The files of a Colab target: the cell, the notebook and, where it travels apart, the payload; all of it follows from spec, lock and facts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import provision
from provision.facts import Facts
from provision.targets.colab import cell, notebook, programs
from provision.targets.colab.document import document_of, written
from provision.targets.colab.naming import CELL, NOTEBOOK, PAYLOAD, colab, name_of, render_command
from provision.targets.colab.shapes import shape_of
from provision.targets.target import Place
from provision.targets.workbench.programs import uv

MOST = 2**20
"""Bytes of a cell's text above which its payload travels apart. Our choice: a tenth of what Jupyter's server takes in one message (tornado, 10 MiB)."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """What is written for one target: the cell's text and the notebook by their file names, the payload with its sha256, and the nonce of the report."""

    name: str
    nonce: str
    cell: str
    notebook: Mapping[str, Any]
    payload: bytes
    sha256: str
    url: str

    @property
    def notebook_name(self) -> str:
        """The name of the notebook's file."""
        return self.name + NOTEBOOK

    def files(self, there: Mapping[str, bytes]) -> dict[str, bytes]:
        """Return the files by name, as they are to be beside those that are there: what is as it should be keeps its bytes, and what people added stays."""
        files = {self.name + CELL: _cell_beside(there.get(self.name + CELL), self.cell).encode()}
        files[self.notebook_name] = _notebook_beside(there.get(self.notebook_name), self.notebook)
        if self.url:
            files[self.name + PAYLOAD] = self.payload
        return files

    def edited_copies(self, there: Mapping[str, bytes]) -> tuple[str, ...]:
        """Return the names of the cells of which the notebook that is there has an edited copy, which stays."""
        return notebook.edited_copies(read_notebook(there.get(self.notebook_name, b"")), self.notebook)


def names(place: Place, url: str = "") -> tuple[str, ...]:
    """Return the names of the files of a target."""
    return tuple(name_of(place) + ending for ending in (CELL, NOTEBOOK, *((PAYLOAD,) if url else ())))


def rendered(place: Place, facts: Facts, *, spec_file: str = "", nonce: str = "", url: str = "") -> Rendered:
    """Return what is written for a target. `spec_file` is how people call the spec; a `url` is where the payload will lie, which is then not in the cell."""
    document = document_of(place, facts, uv(), nonce)
    payload = cell.payload_of(written(document), programs.members())
    sha256 = cell.sha256_of(payload)
    about = about_of(place, facts, document, spec_file or f"{place.stem}.yaml", sha256, url)
    text = cell.text_of(about, [] if url else cell.packed(payload), url)
    return Rendered(name_of(place), document["nonce"], text, _notebook(place, facts, about, text), payload, sha256, url)


def about_of(place: Place, facts: Facts, document: Mapping[str, Any], spec_file: str, sha256: str, url: str = "") -> dict[str, Any]:
    """Return what a cell says of itself, for people."""
    return {
        "what": f"environment {place.spec.name}: {', '.join(_contents(place, document))}",
        "for": ", ".join(_machine(place, facts, document)),
        "spec": spec_file,
        "target": place.target,
        "lock": place.lock.digest,
        "nonce": document["nonce"],
        "made_by": f"provision {provision.__version__}",
        "make_again": render_command(place, spec_file, url),
        "payload_sha256": sha256,
    }


def _contents(place: Place, document: Mapping[str, Any]) -> Iterator[str]:
    versions = place.lock.versions(place.environment)
    yield f"Python {document['python']}"
    yield f"{len(versions)} packages"
    if "torch" in versions:
        yield f"torch {versions['torch']}"
    yield "on top of the runtime's own" if document["isolation"] == "system" else "apart from the runtime's own"


def _machine(place: Place, facts: Facts, document: Mapping[str, Any]) -> Iterator[str]:
    target, gpu, runtime = colab(place), place.spec.gpu, document["runtime"]
    known = f" (Python {runtime['python']}, torch {runtime['torch']}, as of {runtime['as_of']})" if runtime else ""
    yield f"Colab runtime {target.runtime}{known}"
    shape = shape_of(gpu, target.shape, facts)
    yield "no GPU" if gpu.none else f"GPU {gpu.type}"
    if shape is not None and shape.shape == "high":
        yield "high RAM"


def _notebook(place: Place, facts: Facts, about: Mapping[str, Any], text: str) -> dict[str, Any]:
    shape = shape_of(place.spec.gpu, colab(place).shape, facts)
    found = {"payload_sha256": about["payload_sha256"]}
    texts = {notebook.MAKE: text, notebook.VERIFY: cell.filled(programs.verify(), found)}
    if colab(place).isolation == "venv":
        texts[notebook.RUN] = cell.filled(programs.run(), found)
    lines = {"made of": f"{about['spec']}, target {about['target']}", "for": about["for"], "made again by": about["make_again"]}
    words = "The first cell makes the environment of a lock, checks the machine, and proves that it works; the second shows the report. Run all runs both."
    title = f"Environment {notebook.code(place.spec.name)}"
    return notebook.notebook_of(notebook.metadata_of(colab(place), shape.metadata if shape else {}), notebook.said(lines, title, words), texts)


def _cell_beside(there: bytes | None, text: str) -> str:
    found = there.decode("utf-8", "replace") if there is not None else ""
    return found if cell.same(found, text) else text


def _notebook_beside(there: bytes | None, ours: Mapping[str, Any]) -> bytes:
    if there is None or (document := read_notebook(there)) is None or not notebook.is_ours(document):
        return notebook.dumps(ours).encode()
    fresh = notebook.refreshed(document, ours)
    return there if fresh == document else notebook.dumps(fresh).encode()


def read_notebook(content: bytes) -> Any:
    """Return the document in a notebook's bytes, None where there is none."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def foreign(name: str, content: bytes) -> bool:
    """Tell whether a file that stands where one of ours would is someone else's."""
    if name.endswith(PAYLOAD):
        return not content.startswith(b"PK")
    if name.endswith(NOTEBOOK):
        return not notebook.is_ours(read_notebook(content))
    return cell.about_in(content.decode("utf-8", "replace")) is None
