"""Notes torch's memory, and the large arrays, models and jax arrays of a Python at its end.

Another module named sitecustomize runs as if this one did not exist.
"""

from __future__ import annotations

import atexit
import os
import sys

TYPE_CHECKING = False  # as typing has it, which is not imported into every Python of the program
if TYPE_CHECKING:
    from typing import Any

_LONGEST = 6000
_MOST_ARRAYS = 8
_SMALLEST_ARRAY = 1 << 20
_LONGEST_CONTAINER = 10_000


def _note(folder: str) -> None:
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    try:
        if torch is not None:
            version = str(torch.__version__)
            _write(folder, "torch", {"version": version, "cards": _cards(torch)})
        arrays = _arrays(numpy) if numpy is not None else []
        if arrays:
            _write(folder, "arrays", {"arrays": arrays})
        tensors = [*_keras_models(), *_jax_arrays()]
        if tensors:
            tensors.sort(key=lambda row: -row["bytes"])
            _write(folder, "tensors", {"tensors": tensors[:_MOST_ARRAYS]})
    except Exception:  # noqa: BLE001
        return


def _write(folder: str, name: str, note: Any) -> None:
    import json

    path = os.path.join(folder, f"{name}-{os.getpid()}.json")
    with open(path, "w", encoding="utf-8") as out:
        json.dump({"pid": os.getpid(), **note}, out)


def _arrays(numpy: Any) -> Any:
    """Return the largest arrays in the variables of the main module, each buffer once."""
    owners: dict[int, Any] = {}
    for name, value in list(vars(sys.modules["__main__"]).items()):
        if not isinstance(value, numpy.ndarray):
            continue
        owner: Any = value
        while isinstance(owner.base, numpy.ndarray) and not isinstance(owner, numpy.memmap):
            owner = owner.base
        # Pages of a memory map are those of its file: the system takes them back.
        if not isinstance(owner, numpy.memmap) and owner.nbytes >= _SMALLEST_ARRAY:
            owners.setdefault(id(owner), (owner.nbytes, name, str(owner.dtype)))
    largest = sorted(owners.values(), reverse=True)[:_MOST_ARRAYS]
    return [{"name": name, "dtype": dtype, "bytes": size} for size, name, dtype in largest]


def _keras_models() -> Any:
    """Return the weights and the optimizer of each Keras model in the main module's variables."""
    classes: tuple[type, ...] = tuple(
        sys.modules[name].Model
        for name in ("keras", "tf_keras")
        if hasattr(sys.modules.get(name), "Model")
    )
    models: dict[int, Any] = {}
    for name, value in vars(sys.modules["__main__"]).items():
        if isinstance(value, classes):
            models.setdefault(id(value), (name, value))
    rows = []
    for name, model in models.values():
        # A model that was not compiled has no such attribute.
        state: Any = getattr(getattr(model, "optimizer", None), "variables", None) or []
        parts = {"weights": model.weights, "optimizer": state() if callable(state) else state}
        for part, variables in parts.items():
            size = sum(map(_variable_size, variables))
            if size >= _SMALLEST_ARRAY:
                device = _device(getattr(variables[0], "value", None))
                rows.append({"name": name, "part": part, "device": device, "bytes": size})
    return rows


def _variable_size(variable: Any) -> int:
    """Return the bytes of a variable by its shape and type, as float32, bfloat16, bool."""
    count = 1
    for length in variable.shape:
        count *= length
    name = str(getattr(variable.dtype, "name", variable.dtype)).split("_")[0]
    bits = "".join(letter for letter in name if letter.isdigit())
    return count * max(int(bits or 8) // 8, 1)


def _jax_arrays() -> Any:
    """Return the jax arrays in the main module's variables, also inside of trees, each once."""
    jax: Any = sys.modules.get("jax")
    rows: list[Any] = []
    seen: set[int] = set()
    if not hasattr(jax, "tree_util"):
        return rows
    for name, value in list(vars(sys.modules["__main__"]).items()):
        if isinstance(value, (dict, list, tuple)) and len(value) > _LONGEST_CONTAINER:
            continue
        size, device = 0, "cpu"
        for leaf in jax.tree_util.tree_leaves(value):
            if isinstance(leaf, jax.Array) and not leaf.is_deleted() and id(leaf) not in seen:
                seen.add(id(leaf))
                size, device = size + leaf.nbytes, _device(leaf)
        if size >= _SMALLEST_ARRAY:
            rows.append({"name": name, "part": "arrays", "device": device, "bytes": size})
    return rows


def _device(value: Any) -> str:
    words = str(getattr(value, "device", "")).lower()
    return "gpu" if "gpu" in words or "cuda" in words else "cpu"


def _cards(torch: Any) -> Any:
    if not torch.cuda.is_initialized():  # a query for cards would start the driver
        return []
    return [
        {
            "name": torch.cuda.get_device_name(index),
            "allocated_bytes": torch.cuda.max_memory_allocated(index),
            "reserved_bytes": torch.cuda.max_memory_reserved(index),
            "summary": torch.cuda.memory_summary(index)[:_LONGEST],
        }
        for index in range(torch.cuda.device_count())
    ]


def _step_aside() -> None:
    """Take this folder off the path, and run the sitecustomize that would have run without it."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        other = module_from_spec(spec)
        sys.modules["sitecustomize"] = other
        spec.loader.exec_module(other)


if os.environ.get("PROVISION_RUN_NOTES"):
    atexit.register(_note, os.environ["PROVISION_RUN_NOTES"])
_step_aside()
