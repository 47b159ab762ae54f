"""What looks at the machine: one observer a check, each returning readings; none of them judges."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from ..expectations import Expectations


def _unheard(_where: str) -> None:
    """Nobody asks which card is at work."""


@dataclass(slots=True)
class ObserverContext:
    """What an observer works with. `memo` carries values between the observers of one stage; `root`
    and `environ` are the machine's.

    `tell` hears which card is at work, where there are several.
    """

    expected: Expectations
    scratch: Path
    subject: str | None = None
    root: Path = Path("/")
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    memo: dict[str, Any] = field(default_factory=dict)
    report_progress: Callable[[str], None] = _unheard


Observer = Callable[[ObserverContext], "dict[str, Any]"]


def observers_of(stage: str) -> dict[str, Observer]:
    """The observers of a stage by check id; imports that stage's module only, because some of them
    import torch when they run.
    """
    module = import_module(f".{_MODULES[stage]}", __package__)
    observers: dict[str, Observer] = module.OBSERVERS
    return observers


_MODULES = {
    "host": "host",
    "driver": "driver",
    "packages": "packages",
    "diagnosis": "diagnosis",
    "imports": "imports",
    "torch": "torch_build",
    "device": "device",
    "loaders": "loaders",
    "training": "training",
    "resume": "resume",
    "launch": "launch",
    "collectives": "multi_gpu",
    "compile": "torch_compile",
    "rehearsal": "rehearsal",
}
