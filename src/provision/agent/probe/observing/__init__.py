"""Observers: one for each check, which returns readings; none of them judges."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..context import Observer


def observers_of(stage: str) -> dict[str, Observer]:
    """Return the observers of a stage by check id; of their modules, only that one is imported."""
    module = import_module(f".{_MODULES[stage]}", __package__)
    observers: dict[str, Observer] = module.OBSERVERS
    return observers


_MODULES = {
    "host": "host",
    "driver": "driver",
    "packages": "packages",
    "code": "code",
    "diagnosis": "diagnosis",
    "imports": "imports",
    "torch": "torch_build",
    "device": "device",
    "loaders": "loaders",
    "training": "training",
    "resume": "resume",
    "framework": "frameworks",
    "framework-training": "framework_training",
    "framework-resume": "framework_resume",
    "launch": "launch",
    "collectives": "multi_gpu",
    "compile": "torch_compile",
    "rehearsal": "rehearsal",
    "command": "command",
    "replicas": "replicas",
}
