"""Sizes of a model in a local folder, from its config.json.

As in transformers, `training.model.id` is a folder if it begins with ./ or ../, or if a folder of
that name is next to the spec.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from provision.diagnostics import Diagnostic, Route, RouteLocation
from provision.errors import ExternalError
from provision.facts.model_shapes import sizes_of_config
from provision.source.findings import make_finding

if TYPE_CHECKING:
    from provision.effects.system import Reader

MAX_CONFIG_BYTES = 1 << 20
"""Bytes; a config.json of transformers has 1 to 20 kB (our choice)."""
_FILE = "config.json"


class _Refused(Exception):
    """A config.json cannot be used; the arguments are a message and a hint."""


def add_model_sizes(
    data: Any, folder: Path, root: Path, reader: Reader, diagnostics: list[Diagnostic]
) -> Any:
    """Return the data of a spec with the sizes of models in local folders; declared sizes stay.

    Args:
        data: the data of a document, of any shape.
        folder: the folder of the spec.
        root: the folder that may not be left.
        reader: reads the files.
        diagnostics: gets a finding for each file that cannot be used.
    """
    for route, model in _models(data):
        name = model["id"]
        is_path = name.startswith(("./", "../"))
        if not is_path and not reader.exists(folder / name / _FILE):
            continue
        try:
            sizes = _read_sizes(folder / name / _FILE, root, reader)
        except _Refused as refused:
            message, hint = refused.args
            where = RouteLocation((*route, "id"))
            diagnostics.append(make_finding("model-config-unusable", message, where, hint=hint))
            continue
        for key, value in sizes.items():
            if model.get(key) is None:
                model[key] = value
    return data


def _models(data: Any) -> Iterator[tuple[Route, dict[str, Any]]]:
    """Yield the models of a spec and of its targets that have an id, with their routes."""
    if not isinstance(data, dict):
        return
    owners: list[tuple[Route, Any]] = [((), data)]
    targets = data.get("targets")
    if isinstance(targets, dict):
        owners += [(("targets", name), target) for name, target in targets.items()]
    for route, owner in owners:
        training = owner.get("training") if isinstance(owner, dict) else None
        model = training.get("model") if isinstance(training, dict) else None
        if isinstance(model, dict) and isinstance(model.get("id"), str) and "\0" not in model["id"]:
            yield (*route, "training", "model"), model


def _read_sizes(path: Path, root: Path, reader: Reader) -> dict[str, Any]:
    real = path.resolve()
    if not real.is_relative_to(root):
        raise _Refused(f"{path} is outside the project", f"move the folder below {root}")
    try:
        config = json.loads(reader.read(real, MAX_CONFIG_BYTES))
    except ExternalError as error:
        raise _Refused(
            f"{path} cannot be read: {error.why or error.what}",
            "name a folder with a transformers config.json, relative to the spec; or set "
            "`parameters`, `hidden_size` and `layers`",
        ) from None
    except (ValueError, RecursionError):
        config = None
    if not isinstance(config, dict):
        raise _Refused(f"{path} is not a JSON object", "save the model's configuration again")
    sizes: dict[str, Any] = sizes_of_config(config)
    if "parameters" in sizes:
        thousands, rest = divmod(sizes["parameters"], 1000)
        sizes["parameters"] = f"{thousands}.{rest:03}K"
    return sizes
