"""What the lock and the spec promise of a device, as the probe reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

import provision
from provision.facts import load_facts
from provision.facts.memory import MemoryEstimate, MemorySaving, estimate_memory, find_savings
from provision.lock import Lock, LockedEnvironment, digest_of
from provision.lock.conda_names import conda_provided_versions, to_index_name
from provision.spec import Model, Spec, parse_duration, parse_parameter_count, parse_size
from provision.target_facts import build_workload

SCHEMA = "provision.expectations/1"
_MOST_LEVERS = 3
_GIB = 2**30
"""Vendors say GB and mean GiB: what a card of 24 GB shows is a little less than 24 GiB, never more."""  # noqa: E501


def expectations_of(
    spec: Spec, target: str, lock: Lock, environment: LockedEnvironment, prefix: PurePath
) -> dict[str, Any]:
    """Return the expectations for one target; `spec` is the spec as it holds there, sizes are in
    bytes. The caller adds a nonce.
    """
    place = spec.targets[target]
    requires = spec.requires
    by_conda = conda_provided_versions(lock, environment, spec)
    held = {**lock.versions(environment), **by_conda}
    return {
        "schema": SCHEMA,
        "tool": {"name": "provision", "version": provision.__version__},
        "spec": {"name": spec.name, "digest": digest_of(dict(lock.inputs))},
        "lock": {"digest": lock.digest, "environment_digest": environment.digest},
        "target": {
            "name": target,
            "kind": place.kind,
            **({"manager": manager} if (manager := getattr(place, "manager", None)) else {}),
        },
        "tier": spec.verify.tier,
        "timeout_s": parse_duration(spec.verify.timeout),
        "python": {"version": lock.python, "prefix": str(prefix)},
        **({"shared": True} if getattr(place, "isolation", None) == "system" else {}),
        "platform": environment.platform,
        "flavour": environment.flavour,
        "glibc_min": environment.glibc,
        **({"driver_min": environment.driver} if environment.driver else {}),
        "packages": [{"name": name, "version": version} for name, version in sorted(held.items())],
        **_of_conda(lock, environment),
        "direct": sorted(
            ({package.key for package in spec.packages} & held.keys()) | by_conda.keys()
        ),
        "gpu": {
            "type": None if spec.gpu.is_none else spec.gpu.type,
            "count": 0 if spec.gpu.is_none else spec.gpu.count,
        },
        "requires": {
            **{
                f"{name}_bytes": parse_size(size) if (size := getattr(requires, name)) else None
                for name in ("ram", "disk", "shm", "vram")
            },
            "driver": requires.driver,
            "compute_capability": requires.compute_capability,
        },
        "paths": dict(spec.paths),
        "env": dict(spec.env),
        "secrets": sorted(spec.secrets),
        "training": {
            "framework": spec.framework(),
            "precision": str(spec.training.precision),
            "dataloader_workers": spec.training.dataloader_workers,
            "gradient_checkpointing": spec.training.gradient_checkpointing,
            "optimizer": spec.training.optimizer,
            "arguments": dict(spec.training.arguments),
            "method": spec.training.method,
            "model": _model(spec.training.model),
            "batch_size": spec.training.batch_size,
            "sequence_length": spec.training.sequence_length,
            "torch_compile": spec.training.torch_compile,
            "strategy": spec.training.strategy,
            "launcher": spec.training.launcher,
        },
        **_known(spec),
    }


def _of_conda(lock: Lock, environment: LockedEnvironment) -> dict[str, Any]:
    """Return what conda brings: names that may be there without being locked, and its files, by
    which the installer's note tells what came of each.
    """
    brought = lock.conda_records_in(environment)
    if not brought:
        return {}
    return {
        "extras_allowed": sorted({to_index_name(record.name) for record in brought}),
        "conda": sorted(record.stem for record in brought),
    }


def _known(spec: Spec) -> dict[str, Any]:
    facts = load_facts()
    card, work = facts.card(spec.gpu.type), build_workload(spec.training, spec.gpu.count)
    half = "fp16" if card and not facts.has_feature(card, "bf16") else "bf16"
    return {
        "card": {
            "memory_bytes": int(card.memory_gb * _GIB),
            "bandwidth_gb_s": card.bandwidth_gb_s,
            "tflops": dict(card.tflops),
            "source": card.tflops_source,
        }
        if card
        else None,
        "estimate_bytes": _expected_bytes(
            estimate_memory(work, facts), on_card=not spec.gpu.is_none
        )
        if work
        else None,
        "levers": _levers(
            find_savings(work, facts, half=half) if work else (), on_card=not spec.gpu.is_none
        ),
    }


def _levers(levers: Iterable[MemorySaving], *, on_card: bool) -> list[dict[str, Any]]:
    # Weights of 4 bits are for a card: without one neither the training run nor the rehearsal has
    # them.
    possible = [lever for lever in levers if on_card or lever.change.get("method") != "qlora"]
    return [
        {"change": dict(lever.change), "saves_bytes": lever.saved_bytes}
        for lever in possible[:_MOST_LEVERS]
    ]


def _expected_bytes(found: MemoryEstimate, *, on_card: bool) -> int:
    # Without a card there is no CUDA context either.
    return found.total if on_card else found.total - found.overhead


def _model(model: Model | None) -> dict[str, int | None] | None:
    if model is None:
        return None
    return {
        "parameters": parse_parameter_count(model.parameters) if model.parameters else None,
        "hidden_size": model.hidden_size,
        "layers": model.layers,
    }


def digest_of_expectations(expectations: Mapping[str, Any], probe: str) -> str:
    """Return the digest that a stored verdict is valid for: the same promises, judged by the same
    probe (its digest).
    """
    return digest_of(
        {
            "expectations": {key: value for key, value in expectations.items() if key != "nonce"},
            "probe": probe,
        }
    )
