"""What the language allows at a place: which keys, which model, and where else a key is known."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from provision.diagnostics import Route
from provision.spec import Spec

_UNION = (UnionType, Union)


def model_at(route: Route, data: Any) -> type[BaseModel] | None:
    """Return the model of the mapping at `route` of a spec's plain `data`; None where keys are free
    or no mapping stands.
    """
    annotation: Any = Spec
    for part in route:
        annotation = _inner(annotation, part, data)
        if isinstance(data, list):
            data = data[part] if isinstance(part, int) and part < len(data) else None
        else:
            data = data.get(part) if isinstance(data, dict) else None
    found = _choose(annotation, data)
    return found if isinstance(found, type) and issubclass(found, BaseModel) else None


def keys_at(route: Route, data: Any) -> tuple[str, ...]:
    """Return the keys that the mapping at `route` may hold; () where they are free."""
    model = model_at(route, data)
    return () if model is None else tuple(model.model_fields)


def find_key_parent(key: str) -> str | None:
    """Return the part of a spec under which `key` is known, "" for the top; None when it is unknown
    everywhere.
    """
    if key in Spec.model_fields:
        return ""
    for name, field in Spec.model_fields.items():
        model = _choose(field.annotation, None)
        if isinstance(model, type) and issubclass(model, BaseModel) and key in model.model_fields:
            return name
    return (
        "targets.NAME"
        if any(key in model.model_fields for model in target_models().values())
        else None
    )


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
    if (
        isinstance(annotation, type)
        and issubclass(annotation, BaseModel)
        and part in annotation.model_fields
    ):
        return annotation.model_fields[str(part)].annotation
    return None


def _choose(annotation: Any, data: Any) -> Any:
    """Return the member of a union that is meant: not None, and of several models the one of this
    kind.
    """
    annotation = _without_annotated(annotation)
    if get_origin(annotation) not in _UNION:
        return annotation
    members = [
        _without_annotated(member) for member in get_args(annotation) if member is not NoneType
    ]
    if len(members) == 1:
        return members[0]
    wanted = data.get("kind") if isinstance(data, dict) else None
    return next(
        (
            member
            for member in members
            if isinstance(member, type)
            and issubclass(member, BaseModel)
            and _kind(member) == wanted
        ),
        None,
    )


def _without_annotated(annotation: Any) -> Any:
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation


def _kind(model: type[BaseModel]) -> str:
    field = model.model_fields.get("kind")
    return (
        str(get_args(field.annotation)[0])
        if field is not None and get_origin(field.annotation) is Literal
        else ""
    )
