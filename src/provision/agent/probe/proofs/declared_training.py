"""Steps of the declared training with random weights: Trainer's, else a plain loop."""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .loop import optimizer_named
from .model_shape import ModelShape
from .recipe import Recipe, autocast, half_type, next_token_loss
from .trainer import logged_losses, own_arguments

STEPS = 2
_LORA_RANK = 8
"""peft's LoraConfig has r=8 by default, on query and value of each layer."""
_RATE = 1e-5


@dataclass(frozen=True, slots=True)
class RehearsalPlan:
    """The rehearsed model, batch and method; `device` is "cpu", "cuda" or "mps"."""

    shape: ModelShape
    method: str
    precision: str
    optimizer: str
    gradient_checkpointing: bool
    batch_size: int
    sequence_length: int
    device: str
    steps: int = STEPS

    @property
    def tokens(self) -> int:
        """Tokens of one step."""
        return self.batch_size * self.sequence_length


@dataclass(frozen=True, slots=True)
class RehearsalResult:
    """Result of the steps: parameters, trained ones, losses, and seconds of each step."""

    parameters: int
    trained: int
    losses: tuple[float, ...]
    steps_s: tuple[float, ...]

    @property
    def finite(self) -> bool:
        """Return whether every loss is a number."""
        return all(math.isfinite(loss) for loss in self.losses)


class RandomTokens:
    """Random tokens, which take the same time and memory as real ones. Needs no torch."""

    def __init__(self, plan: RehearsalPlan) -> None:
        self._length, self._count, self._vocabulary = (
            plan.sequence_length,
            plan.batch_size * plan.steps,
            plan.shape.vocabulary,
        )

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> dict[str, list[int]]:
        symbols = [
            (index * 7919 + position * 104729) % self._vocabulary
            for position in range(self._length)
        ]
        return {"input_ids": symbols, "labels": symbols}


def rehearse_with_loop(plan: RehearsalPlan) -> RehearsalResult:
    """The steps of a plain torch loop over a decoder of that shape. Raises what torch raises."""
    model = build_decoder(plan)
    optimizer = optimizer_named(plan.optimizer)(model.parameters(), lr=_RATE)
    losses, took = [], []
    for batch in _batches(plan):
        began = time.perf_counter()
        with autocast(plan.device, plan.precision):
            loss = next_token_loss(model(batch), batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss.detach()))
        took.append(time.perf_counter() - began)
    count = sum(tensor.numel() for tensor in model.parameters())
    return RehearsalResult(count, count, tuple(losses), tuple(took))


def rehearse_with_trainer(plan: RehearsalPlan, folder: Path) -> RehearsalResult:
    """Run Trainer's steps over a Llama of that shape, or forward passes for inference.

    Raises what torch, transformers and peft raise.
    """
    model = build_llama(plan)
    parameters = sum(tensor.numel() for tensor in model.parameters())
    if plan.method == "inference":
        return _inferred(plan, model, parameters)
    if plan.method == "lora":
        model = _adapted(model)
    trained = sum(tensor.numel() for tensor in model.parameters() if tensor.requires_grad)
    return _trained(plan, model, folder, parameters, trained)


def reason_not_rehearsable(method: str, proof_is_trainer: bool) -> str:
    """Why a method cannot be rehearsed here; "" when it can."""
    if method == "qlora":
        return (
            "4-bit weights are not rehearsed: random weights would have to be quantized first, "
            "which real training does not do"
        )
    if method in ("lora", "inference") and not proof_is_trainer:
        return f"rehearsing method {method} needs transformers, which is not locked"
    if method == "lora" and importlib.util.find_spec("peft") is None:
        return "rehearsing method lora needs peft, which is not installed"
    return ""


def _trained(
    plan: RehearsalPlan, model: Any, folder: Path, parameters: int, trained: int
) -> RehearsalResult:
    import torch
    from transformers import Trainer, TrainerCallback, TrainingArguments

    marks: list[float] = []

    class Clock(TrainerCallback):  # type: ignore[misc,unused-ignore]
        def on_step_begin(self, *_: Any, **__: Any) -> None:
            marks.append(time.perf_counter())

        def on_step_end(self, *_: Any, **__: Any) -> None:
            if plan.device == "cuda":
                torch.cuda.synchronize()
            marks.append(time.perf_counter())

    recipe = Recipe(
        precision=plan.precision,
        optimizer=plan.optimizer,
        gradient_checkpointing=plan.gradient_checkpointing,
        device=plan.device,
        learning_rate=_RATE,
        steps=plan.steps,
        batch=plan.batch_size,
    )
    arguments = TrainingArguments(**own_arguments(recipe, folder) | {"save_strategy": "no"})
    dataset: Any = RandomTokens(plan)
    trainer = Trainer(model=model, args=arguments, train_dataset=dataset, callbacks=[Clock()])
    trainer.train()
    return RehearsalResult(
        parameters,
        trained,
        logged_losses(trainer),
        tuple(end - begin for begin, end in zip(marks[::2], marks[1::2], strict=False)),
    )


def build_llama(plan: RehearsalPlan) -> Any:
    """Return a random Llama, made on the device: the machine may have less memory than its card."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    shape = plan.shape
    config = LlamaConfig(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=shape.inner,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.heads,
        max_position_embeddings=plan.sequence_length,
        tie_word_embeddings=True,
        use_cache=plan.method == "inference",
    )
    half = half_type(plan.precision)
    before = torch.get_default_dtype()
    if half is not None and plan.method != "full":
        torch.set_default_dtype(
            half
        )  # frozen weights are loaded in the precision, trained ones are kept in 32 bits
    try:
        with torch.device(plan.device):
            return LlamaForCausalLM(config)
    finally:
        torch.set_default_dtype(before)


def _adapted(model: Any) -> Any:
    from peft import LoraConfig, get_peft_model  # type: ignore[import-not-found,unused-ignore]

    # with checkpointing, gradients would otherwise end at the frozen embedding
    model.enable_input_require_grads()
    return get_peft_model(
        model, LoraConfig(r=_LORA_RANK, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    )


def _inferred(plan: RehearsalPlan, model: Any, parameters: int) -> RehearsalResult:
    import torch

    model.eval()
    losses, took = [], []
    with torch.no_grad():
        for batch in _batches(plan):
            began = time.perf_counter()
            losses.append(
                float(model(input_ids=batch, use_cache=True).logits[:, -1].float().mean())
            )
            took.append(time.perf_counter() - began)
    return RehearsalResult(parameters, 0, tuple(losses), tuple(took))


def _batches(plan: RehearsalPlan) -> Iterator[Any]:
    import torch

    tokens = RandomTokens(plan)
    for step in range(plan.steps):
        rows = [tokens[step * plan.batch_size + row]["input_ids"] for row in range(plan.batch_size)]
        yield torch.tensor(rows, device=plan.device)


def build_decoder(plan: RehearsalPlan) -> Any:
    """Return a decoder of that shape with random weights, made on the device."""
    import torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    shape = plan.shape

    class Block(nn.Module):  # type: ignore[misc,unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.before, self.after = nn.RMSNorm(shape.hidden), nn.RMSNorm(shape.hidden)
            self.mixed, self.out = (
                nn.Linear(shape.hidden, 3 * shape.hidden, bias=False),
                nn.Linear(shape.hidden, shape.hidden, bias=False),
            )
            self.gate, self.up = (
                nn.Linear(shape.hidden, shape.inner, bias=False),
                nn.Linear(shape.hidden, shape.inner, bias=False),
            )
            self.down = nn.Linear(shape.inner, shape.hidden, bias=False)

        def forward(self, hidden: Any) -> Any:
            parts = (
                self.mixed(self.before(hidden))
                .unflatten(-1, (3, shape.heads, -1))
                .transpose(1, 3)
                .unbind(2)
            )
            seen = (
                nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
                .transpose(1, 2)
                .flatten(2)
            )
            hidden = hidden + self.out(seen)
            inner = self.after(hidden)
            return hidden + self.down(nn.functional.silu(self.gate(inner)) * self.up(inner))

    class Decoder(nn.Module):  # type: ignore[misc,unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(shape.vocabulary, shape.hidden)
            self.blocks, self.norm = (
                nn.ModuleList(Block() for _ in range(shape.layers)),
                nn.RMSNorm(shape.hidden),
            )

        def forward(self, symbols: Any) -> Any:
            hidden = self.embedding(symbols)
            for block in self.blocks:
                hidden = (
                    checkpoint(block, hidden, use_reentrant=False)
                    if plan.gradient_checkpointing
                    else block(hidden)
                )
            return self.norm(hidden) @ self.embedding.weight.T

    torch.manual_seed(0)
    with torch.device(plan.device):
        return Decoder()
