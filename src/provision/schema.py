"""The JSON Schema of the language, for editors and for the reference."""

from __future__ import annotations

import ast
import itertools
from pathlib import Path
from types import ModuleType
from typing import Any

from provision import spec
from provision.kinds import models
from provision.spec import Spec


def json_schema(completions: dict[str, list[str]]) -> dict[str, Any]:
    """Return the JSON Schema (draft 7) of the language.

    `completions` maps a field of the spec ("python", "cuda", "gpu") to known values: editors
    offer them, other values stay allowed.
    Draft 7 because YAML language servers read that; there, keywords beside `$ref` are ignored,
    so such references are wrapped.
    """
    schema = Spec.model_json_schema(ref_template="#/definitions/{model}")
    definitions = schema.pop("$defs")
    _add_field_descriptions({"Spec": schema, **definitions})
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **schema,
        "definitions": definitions,
    }
    properties = schema["properties"]
    for field, values in completions.items():
        described = {
            key: properties[field].pop(key)
            for key in ("description", "title", "default")
            if key in properties[field]
        }
        properties[field] = {
            **described,
            "anyOf": [{"type": "string", "enum": values}, dict(properties[field])],
        }
    wrapped: dict[str, Any] = _wrap_references(schema)
    return wrapped


def _add_field_descriptions(parts: dict[str, Any]) -> None:
    """Give every field the text that stands below it in its file. Reading the files here keeps it
    out of the start of every command.
    """
    written = _parse_classes(models) | _parse_classes(spec)
    for name, part in parts.items():
        for owner in reversed(
            [kind.__name__ for kind in _find_model(name).__mro__ if kind.__name__ in written]
        ):
            for field, below in itertools.pairwise(written[owner].body):
                if (
                    isinstance(field, ast.AnnAssign)
                    and isinstance(field.target, ast.Name)
                    and isinstance(below, ast.Expr)
                    and isinstance(below.value, ast.Constant)
                ):
                    _properties_of(part)[field.target.id]["description"] = " ".join(
                        str(below.value.value).split()
                    )


def _parse_classes(module: ModuleType) -> dict[str, ast.ClassDef]:
    text = Path(str(module.__file__)).read_text(encoding="utf-8")
    return {node.name: node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)}


def _find_model(name: str) -> type:
    model: type = getattr(spec, name, None) or getattr(models, name)
    return model


def _properties_of(part: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(
        form["properties"] for form in (part, *part.get("anyOf", ())) if "properties" in form
    )
    return found


def _wrap_references(node: Any) -> Any:
    if isinstance(node, list):
        return [_wrap_references(item) for item in node]
    if not isinstance(node, dict):
        return node
    rest = {
        key: _wrap_references(value)
        for key, value in node.items()
        if key not in ("$ref", "discriminator")
    }
    if "$ref" not in node:
        return rest
    return {**rest, "allOf": [{"$ref": node["$ref"]}]} if rest else {"$ref": node["$ref"]}
