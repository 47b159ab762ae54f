"""Observers of a run: number format, recomputed layers, attention, placement."""

from __future__ import annotations

import multiprocessing
from typing import Any

_OF_OTHERS = {
    "8bit": ("bitsandbytes", "torchao", "galore_torch"),
    "4bit": ("torchao",),
    "bnb": ("bitsandbytes",),
    "paged": ("bitsandbytes",),
    "apex": ("apex",),
}
"""Words in the name of an optimizer, and the packages that it may come from."""
_BITS = {"4bit": 4, "8bit": 8, "32bit": 32}
_QUALIFIERS = (*_BITS, *_OF_OTHERS, "torch", "hf", "fused", "npu", "xla", "layerwise")
"""Words that say how an optimizer is made, not which it is."""


class LinearLayerRecorder:
    """Records a linear layer: output types, and inputs, weight and output of the first call."""

    def __init__(self, layer: Any) -> None:
        self.types: list[str] = []
        self._first: tuple[Any, Any, Any] | None = None
        self._hook = layer.register_forward_hook(self._note)

    def __enter__(self) -> LinearLayerRecorder:
        return self

    def __exit__(self, *_: object) -> None:
        self._hook.remove()

    def _note(self, layer: Any, inputs: tuple[Any, ...], output: Any) -> None:
        self.types.append(str(output.dtype).replace("torch.", ""))
        if self._first is None:
            self._first = (
                inputs[0].detach().clone(),
                layer.weight.detach().clone(),
                output.detach().clone(),
            )

    @property
    def dtype(self) -> str:
        """The type of the last output; "" when the layer was never called."""
        return self.types[-1] if self.types else ""

    def product_error(self) -> float | None:
        """Relative error of the first product against float64, which shows the arithmetic."""
        if self._first is None:
            return None
        inputs, weight, output = (tensor.cpu().double() for tensor in self._first)
        exact = inputs @ weight.T
        return float((output - exact).norm() / exact.norm())


def detect_attention(model: Any, symbols: Any) -> str:
    """Return the attention of a forward pass, such as "sdpa" or "flash_attention_2".

    It is "eager" if no known kernel is called.
    """
    import torch
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    called: set[str] = set()

    def note(_mode: Any, function: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # A Python function has a name; an operator prints as "namespace::name".
        called.update((getattr(function, "__name__", ""), str(function).replace(".", "::", 1)))
        return function(*args, **(kwargs or {}))

    functions = type("Functions", (TorchFunctionMode,), {"__torch_function__": note})
    operators = type("Operators", (TorchDispatchMode,), {"__torch_dispatch__": note})
    training = model.training
    model.eval()
    try:
        with torch.no_grad(), functions(), operators():
            model(input_ids=symbols)
    finally:
        model.train(training)
    return next(
        (name for name, mark in _MARKS.items() if any(mark in word for word in called)), "eager"
    )


_MARKS = {
    "flash_attention_2": "flash_attn::",
    "flex_attention": "flex_attention",
    "sdpa": "scaled_dot_product",
}


def built_optimizer(name: str, optimizer: Any) -> str:
    """The declared name when the optimizer that was built is of its class, else what was built."""
    inner = getattr(optimizer, "optimizer", optimizer)
    # The layerwise ones of transformers have one for each weight, behind one that does nothing.
    inner = next(iter((getattr(inner, "optimizer_dict", None) or {}).values()), inner)
    words, class_name = name.lower().split("_"), f"{type(inner).__module__}.{type(inner).__name__}"
    package = class_name.partition(".")[0]
    # apex calls its AdamW FusedAdam.
    if not ("apex" in words or _is_called(type(inner).__name__, words)) or any(
        package not in _OF_OTHERS[word] for word in words if word in _OF_OTHERS
    ):
        return class_name
    if "fused" in words and package == "torch" and not inner.defaults.get("fused"):
        return f"{class_name}, not fused"
    bits = getattr(getattr(inner, "args", None), "optim_bits", None)
    wanted = next((_BITS[word] for word in words if word in _BITS), bits)
    return name if bits in (None, wanted) else f"{class_name} of {bits} bits"


def _is_called(kind: str, words: list[str]) -> bool:
    """Return whether a class name has the words of an optimizer: AdamWScheduleFree has AdamW."""
    left = kind.lower()
    for word in sorted(set(words) - set(_QUALIFIERS), key=len, reverse=True):
        if word not in left:
            return False
        left = left.replace(word, "", 1)
    for word in _QUALIFIERS:
        left = left.replace(word, "")
    return not left


class ForwardPassCounter:
    """Counts a model's forward passes in training, and the most worker processes alive."""

    def __init__(self, model: Any) -> None:
        self.count = 0
        self.workers = WorkerCounter()
        self._hook: Any = model.register_forward_pre_hook(self._note)

    def _note(self, _model: Any, _inputs: Any) -> None:
        self.count += 1
        self.workers.update()

    def remove(self) -> None:
        """Stop counting."""
        self._hook.remove()


class WorkerCounter:
    """Counts live processes of multiprocessing: `most` in any sample.

    A DataLoader only reports how many it should have started.
    """

    def __init__(self) -> None:
        self.most = 0
        self._before = self._alive()

    def update(self) -> None:
        """Count those that live now."""
        self.most = max(self.most, len(self._alive() - self._before))

    @staticmethod
    def _alive() -> set[int | None]:
        return {child.pid for child in multiprocessing.active_children()}


class WeightSnapshot:
    """The weights of a model as they are now, to find later which of them did not move."""

    def __init__(self, model: Any) -> None:
        self._before = {name: weight.detach().clone() for name, weight in model.named_parameters()}

    def unchanged(self, model: Any) -> tuple[str, ...]:
        """Return the names of the weights that are what they were, number by number."""
        now = {name: weight.detach() for name, weight in model.named_parameters()}
        return tuple(
            name
            for name, before in self._before.items()
            if now[name].shape == before.shape
            and bool((now[name].to(before.device) == before).all())
        )


def zero_weights(model: Any) -> None:
    """Set every weight to zero: what a run then has of them, it has read from a checkpoint."""
    for weight in model.parameters():
        weight.data.zero_()


def wrapper_classes(model: Any) -> list[str]:
    """Return the classes around a model, outermost first, and those that fully_shard adds."""
    names: list[str] = []
    while model is not None:
        names += [
            kind.__name__
            for kind in type(model).__mro__
            if kind.__module__.startswith(("torch.nn.parallel", "torch.distributed", "deepspeed"))
        ]
        model = model.module if hasattr(model, "module") and names else None
    return list(dict.fromkeys(names))
