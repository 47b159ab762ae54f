"""Lookups in the spec model: the model and the keys at a route, and the parent of a key."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from provision.diagnostics import Route
from provision.kinds import Registry
from provision.spec import Spec

_UNION = (UnionType, Union)


def keys_at(route: Route, data: dict[str, Any], registry: Registry) -> tuple[str, ...]:
    """Return the keys that the mapping at a route of a spec's plain data may contain.

    () if they are free, or if the value is not a mapping.
    """
    annotation: Any = Spec
    if len(route) > 1 and route[0] == "targets":
        kind = registry.find(data["targets"][route[1]].get("kind"))
        annotation, route = kind and kind.model, route[2:]
    for part in route:
        annotation = _member_annotation(annotation, part)
    model = _as_model(_without_none(annotation))
    return () if model is None else tuple(model.model_fields)


def find_key_parent(key: str, registry: Registry) -> str | None:
    """Return the part of a spec that contains a key, "" for the top level, None if unknown."""
    if key in Spec.model_fields:
        return ""
    for name, field in Spec.model_fields.items():
        model = _as_model(_without_none(field.annotation))
        if model is not None and key in model.model_fields:
            return name
    if any(key in kind.model.model_fields for kind in registry.kinds):
        return "targets.NAME"
    return None


def _member_annotation(annotation: Any, part: str | int) -> Any:
    annotation = _without_none(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is dict:
        return arguments[1]
    if origin is list:
        return arguments[0]
    model = _as_model(annotation)
    if model is None or part not in model.model_fields:
        return None
    return model.model_fields[str(part)].annotation


def _as_model(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return None


def _without_none(annotation: Any) -> Any:
    """Return the only other member of an optional annotation, without its metadata."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) not in _UNION:
        return annotation
    members = [member for member in get_args(annotation) if member is not NoneType]
    return _without_none(members[0]) if len(members) == 1 else None
