"""What a run shows of itself while it runs: the number format of a product, recomputed layers, the attention that is called, where the model lies."""

from __future__ import annotations

from typing import Any

_CLASSES = {"adamw": "AdamW", "adafactor": "Adafactor", "sgd": "SGD", "adagrad": "Adagrad", "rmsprop": "RMSprop"}
_OF_OTHERS = {"8bit": ("bitsandbytes", "torchao"), "4bit": ("torchao",), "bnb": ("bitsandbytes",), "paged": ("bitsandbytes",), "apex": ("apex",)}
"""Words in the name of an optimizer, and the packages that it may come from."""


class LinearWitness:
    """Watches a linear layer: the type of each output, and inputs, weight and output of the first call."""

    def __init__(self, layer: Any) -> None:
        self.types: list[str] = []
        self._first: tuple[Any, Any, Any] | None = None
        self._hook = layer.register_forward_hook(self._note)

    def __enter__(self) -> LinearWitness:
        return self

    def __exit__(self, *_: object) -> None:
        self._hook.remove()

    def _note(self, layer: Any, inputs: tuple[Any, ...], output: Any) -> None:
        self.types.append(str(output.dtype).replace("torch.", ""))
        if self._first is None:
            self._first = (inputs[0].detach().clone(), layer.weight.detach().clone(), output.detach().clone())

    @property
    def dtype(self) -> str:
        """The type of the last output; "" when the layer was never called."""
        return self.types[-1] if self.types else ""

    def product_error(self) -> float | None:
        """Relative Frobenius error of the first product against float64, which tells the arithmetic that was used; None when there was none."""
        if self._first is None:
            return None
        inputs, weight, output = (tensor.cpu().double() for tensor in self._first)
        exact = inputs @ weight.T
        return float((output - exact).norm() / exact.norm())


def attention_called(model: Any, symbols: Any) -> str:
    """The attention that one forward pass calls: "sdpa", "flash_attention_2", "flex_attention", or "eager" when none of these is called."""
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
    return next((name for name, mark in _MARKS.items() if any(mark in word for word in called)), "eager")


_MARKS = {"flash_attention_2": "flash_attn::", "flex_attention": "flex_attention", "sdpa": "scaled_dot_product"}


def built_optimizer(name: str, optimizer: Any) -> str:
    """The declared name when the optimizer that was built is of its class, else what was built."""
    inner = getattr(optimizer, "optimizer", optimizer)
    words, found = name.lower().split("_"), f"{type(inner).__module__}.{type(inner).__name__}"
    others = [packages for word, packages in _OF_OTHERS.items() if word in words]
    wanted = _CLASSES.get(words[0])
    if others:
        return name if found.split(".", maxsplit=1)[0] in others[0] else found
    if wanted is not None and type(inner).__name__ != wanted:
        return found
    if "fused" in words and not inner.defaults.get("fused"):
        return f"{found}, not fused"
    return name


class Passes:
    """Counts the forward passes of a model while it trains."""

    def __init__(self, model: Any) -> None:
        self.count = 0
        self._hook: Any = model.register_forward_pre_hook(self._note)

    def _note(self, _model: Any, _inputs: Any) -> None:
        self.count += 1

    def remove(self) -> None:
        """Stop counting."""
        self._hook.remove()


def wrappers(model: Any) -> list[str]:
    """The names of the classes around a model, outermost first, and of the base classes that fully_shard mixes in."""
    names: list[str] = []
    while model is not None:
        names += [kind.__name__ for kind in type(model).__mro__ if kind.__module__.startswith(("torch.nn.parallel", "torch.distributed", "deepspeed"))]
        model = model.module if hasattr(model, "module") and names else None
    return list(dict.fromkeys(names))
