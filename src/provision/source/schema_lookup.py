"""Lookups in the spec model: the model and the keys at a route, and the parent of a key."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from provision.diagnostics import Route
from provision.spec import Spec

_UNION = (UnionType, Union)


def model_at(route: Route, data: Any) -> type[BaseModel] | None:
    """Return the model of the mapping at a route of a spec's plain data.

    None if the keys are free or the value is not a mapping.
    """
    annotation: Any = Spec
    for part in route:
        annotation = _inner(annotation, part, data)
        if isinstance(data, list):
            data = data[part] if isinstance(part, int) and part < len(data) else None
        else:
            data = data.get(part) if isinstance(data, dict) else None
    return _as_model(_choose(annotation, data))


def keys_at(route: Route, data: Any) -> tuple[str, ...]:
    """Return the keys that the mapping at a route may contain; () if they are free."""
    model = model_at(route, data)
    return () if model is None else tuple(model.model_fields)


def find_key_parent(key: str) -> str | None:
    """Return the part of a spec that contains a key, "" for the top level, None if unknown."""
    if key in Spec.model_fields:
        return ""
    for name, field in Spec.model_fields.items():
        model = _as_model(_choose(field.annotation, None))
        if model is not None and key in model.model_fields:
            return name
    if any(key in model.model_fields for model in target_models().values()):
        return "targets.NAME"
    return None


def target_models() -> dict[str, type[BaseModel]]:
    """Return the model of each kind of target."""
    union = get_args(Spec.model_fields["targets"].annotation)[1]
    return {_kind(model): model for model in get_args(_without_annotated(union))}


def _inner(annotation: Any, part: str | int, data: Any) -> Any:
    annotation = _choose(annotation, data)
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


def _choose(annotation: Any, data: Any) -> Any:
    """Return the member of a union that applies; of several models, that of the kind."""
    annotation = _without_annotated(annotation)
    if get_origin(annotation) not in _UNION:
        return annotation
    members = [
        _without_annotated(member) for member in get_args(annotation) if member is not NoneType
    ]
    if len(members) == 1:
        return members[0]
    kind = data.get("kind") if isinstance(data, dict) else None
    models = [model for member in members if (model := _as_model(member)) is not None]
    return next((model for model in models if _kind(model) == kind), None)


def _without_annotated(annotation: Any) -> Any:
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation


def _kind(model: type[BaseModel]) -> str:
    field = model.model_fields.get("kind")
    if field is None or get_origin(field.annotation) is not Literal:
        return ""
    return str(get_args(field.annotation)[0])
