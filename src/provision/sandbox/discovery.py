"""Schemas of the emulated APIs: an installed discovery document, or its extract in this folder."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

_KEPT = ("type", "$ref", "items", "additionalProperties", "enum", "readOnly", "format")
_MASKED = re.compile(r"\* `([a-z0-9_.]+)`")


class ApiDocument(NamedTuple):
    """A discovery document: its file, the messages of requests, and the resource with a patch."""

    file: str
    roots: tuple[str, ...]
    patched: str

    @property
    def extract_file(self) -> Path:
        """The extract that is used if google-api-python-client is not installed."""
        return Path(__file__).with_name(self.file)


NOTEBOOKS = ApiDocument(
    "notebooks.v2.json",
    ("Instance", "DiagnoseInstanceRequest", "ResizeDiskRequest"),
    "instances",
)
VERTEX_PREFIX = "GoogleCloudAiplatformV1"
VERTEX = ApiDocument(
    "aiplatform.v1.json",
    (
        f"{VERTEX_PREFIX}NotebookRuntimeTemplate",
        f"{VERTEX_PREFIX}NotebookExecutionJob",
        f"{VERTEX_PREFIX}AssignNotebookRuntimeRequest",
        f"{VERTEX_PREFIX}CustomJob",
    ),
    "notebookRuntimeTemplates",
)


class ApiSchema(NamedTuple):
    """The revision of the document, its messages by name, and the paths of an update mask.

    Messages have fields with type, enum, readOnly and so on.
    """

    revision: str
    messages: Mapping[str, Mapping[str, Any]]
    mask_paths: frozenset[str]


@lru_cache(maxsize=2)
def load_api_schema(document: ApiDocument = NOTEBOOKS) -> ApiSchema:
    """Return the schema of google-api-python-client's document, or of the extract without it."""
    installed = find_discovery_document(document)
    extract = (
        extract_schema(json.loads(installed.read_bytes()), document)
        if installed
        else json.loads(document.extract_file.read_bytes())
    )
    return ApiSchema(extract["revision"], extract["messages"], frozenset(extract["masks"]))


def find_discovery_document(document: ApiDocument = NOTEBOOKS) -> Path | None:
    """Return the discovery document in google-api-python-client, or None."""
    module = find_spec("googleapiclient")
    if module is None or module.origin is None:
        return None
    path = Path(module.origin).parent / "discovery_cache" / "documents" / document.file
    return path if path.exists() else None


def extract_schema(whole: Mapping[str, Any], document: ApiDocument = NOTEBOOKS) -> dict[str, Any]:
    """Return the part of a discovery document that validates request bodies."""
    messages: dict[str, Any] = {}
    waiting = list(document.roots)
    while waiting:
        name = waiting.pop()
        if name not in messages:
            fields = whole["schemas"][name]["properties"]
            messages[name] = {field: _pruned(about) for field, about in sorted(fields.items())}
            waiting.extend(_references(messages[name]))
    locations = whole["resources"]["projects"]["resources"]["locations"]
    patch = locations["resources"][document.patched]["methods"]["patch"]
    masks = _MASKED.findall(patch["parameters"]["updateMask"]["description"])
    return {
        "revision": whole["revision"],
        "messages": dict(sorted(messages.items())),
        "masks": sorted(masks),
    }


def _pruned(about: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: about[key] for key in _KEPT if key in about}
    return {
        key: _pruned(value) if isinstance(value, Mapping) else value for key, value in kept.items()
    }


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        if "$ref" in value:
            yield value["$ref"]
        for inner in value.values():
            yield from _references(inner)
