"""The JSON Schema of the language, for editors and for the reference."""

from __future__ import annotations

import ast
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic.json_schema import models_json_schema

from provision.field_types import StrictModel
from provision.kinds import REGISTRY, Registry
from provision.spec import Spec


def json_schema(completions: dict[str, list[str]], registry: Registry = REGISTRY) -> dict[str, Any]:
    """Return the JSON Schema (draft 7) of the language.

    YAML language servers read draft 7. It ignores keywords next to `$ref`, so such references
    are wrapped.

    Args:
        completions: known values of a field ("python", "cuda", "gpu"). Editors offer them; other
            values stay allowed.
        registry: the kinds of target.
    """
    models: list[type[StrictModel]] = [Spec, *(kind.model for kind in registry.kinds)]
    references, schemas = models_json_schema(
        [(model, "validation") for model in models], ref_template="#/definitions/{model}"
    )
    definitions = schemas["$defs"]
    _add_field_descriptions(definitions)
    schema = definitions.pop("Spec")
    target = {"oneOf": [references[kind.model, "validation"] for kind in registry.kinds]}
    targets = schema["properties"]["targets"]
    targets["patternProperties"] = dict.fromkeys(targets["patternProperties"], target)
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


def _add_field_descriptions(definitions: dict[str, Any]) -> None:
    """Describe every field by the docstring below it.

    pydantic can do this too, at the start of every command; here the files are read on demand.
    """
    models = {model.__name__: model for model in _models(StrictModel)}
    docstrings: dict[str, dict[str, str]] = {}
    for name, definition in definitions.items():
        if name not in models:  # an enum
            continue
        for owner in reversed(models[name].__mro__):
            if issubclass(owner, StrictModel):
                if owner.__module__ not in docstrings:
                    docstrings |= _field_docstrings(sys.modules[owner.__module__])
                for field, text in docstrings[owner.__name__].items():
                    _properties_of(definition)[field]["description"] = text


def _models(base: type[StrictModel]) -> Iterator[type[StrictModel]]:
    for model in base.__subclasses__():
        yield model
        yield from _models(model)


def _field_docstrings(module: ModuleType) -> dict[str, dict[str, str]]:
    """Return the docstring below each annotated field, by class."""
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    docstrings: dict[str, dict[str, str]] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            fields = docstrings.setdefault(node.name, {})
            for field, below in itertools.pairwise(node.body):
                match field, below:
                    case (
                        ast.AnnAssign(target=ast.Name(id=name)),
                        ast.Expr(value=ast.Constant(value=str(text))),
                    ):
                        fields[name] = " ".join(text.split())
    return docstrings


def _properties_of(definition: dict[str, Any]) -> dict[str, Any]:
    forms = (definition, *definition.get("anyOf", ()))
    properties: dict[str, Any] = next(form["properties"] for form in forms if "properties" in form)
    return properties


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
