"""The probe as it is shipped, and expectations to ask it about."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from venv import create as create_venv

import pytest

from provision.verification.device_files import probe_zipapp
from tests.agent.probe.bench import Environment
from tests.support import with_bytecode


def build_probe(target: Path) -> Path:
    """Write the probe as a zip, with its bytecode."""
    target.write_bytes(with_bytecode(probe_zipapp()))
    return target


def document(**changes: Any) -> dict[str, Any]:
    """An expectations document for an environment without torch; dotted keys with `__` replace
    nested values.
    """
    base: dict[str, Any] = {
        "schema": "provision.expectations/1",
        "tool": {"name": "provision", "version": "0.1.0"},
        "spec": {"name": "quickstart", "digest": "sha256:spec"},
        "lock": {"digest": "sha256:lock", "environment_digest": "sha256:env"},
        "target": {"name": "local", "kind": "local", "manager": "uv"},
        "tier": "quick",
        "timeout_s": 600,
        "nonce": "0123456789abcdef",
        "python": {"version": "3.11", "prefix": "/env"},
        "platform": "linux-x86_64",
        "flavour": None,
        "glibc_min": None,
        "packages": [],
        "direct": [],
        "gpu": {"type": None, "count": 0},
        "requires": dict.fromkeys(
            ("ram_bytes", "disk_bytes", "shm_bytes", "vram_bytes", "driver", "compute_capability")
        ),
        "paths": {},
        "env": {},
        "secrets": [],
        "training": {
            "framework": "hf-trainer",
            "precision": "fp32",
            "dataloader_workers": 0,
            "gradient_checkpointing": False,
            "optimizer": "adamw_torch",
            "arguments": {},
        },
    }
    for key, value in changes.items():
        *route, last = key.split("__")
        block = base
        for part in route:
            block = block[part]
        block[last] = value
    return base


@pytest.fixture(scope="session", name="document")
def _document() -> Callable[..., dict[str, Any]]:
    return document


@pytest.fixture(scope="session")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_probe(tmp_path_factory.mktemp("probe") / "probe.pyz")


@pytest.fixture
def write_expectations(tmp_path: Path) -> Callable[..., Path]:
    def write(**changes: Any) -> Path:
        path = tmp_path / "expectations.json"
        path.write_text(json.dumps(document(**changes)), encoding="utf-8")
        return path

    return write


@pytest.fixture
def environment(tmp_path: Path, probe: Path) -> Environment:
    root = tmp_path / "env"
    create_venv(root, symlinks=True)
    return Environment(root, probe, document, {})
