"""An undeclared machine: system, limits, driver, cards, cloud, packages, and torch's view."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from .context import ObserverContext
from .expectations import DeclaredMinima, DeclaredTraining, Expectations
from .inventory import active_distributions, find_distributions
from .model import Environ, Readings, Tier
from .observing import observers_of
from .observing.host_context import find_container, find_place
from .own_code import own_command, own_digest
from .readings import class_of_reading
from .redactor import Redactor
from .text_files import read_text

SCHEMA = "provision.env/1"
REPORTED_PACKAGES = (
    "torch",
    "torchvision",
    "torchaudio",
    "triton",
    "transformers",
    "accelerate",
    "datasets",
    "tokenizers",
    "safetensors",
    "huggingface-hub",
    "peft",
    "trl",
    "bitsandbytes",
    "deepspeed",
    "flash-attn",
    "xformers",
    "numpy",
    "tensorflow",
    "jax",
    "jaxlib",
)
"""Packages whose version is reported, in addition to all `nvidia-*`."""
_TORCH_TIMEOUT_S = 180
_TAIL = 1500
_PATHS = ("CONDA_DEFAULT_ENV", "CUDA_HOME", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
_GVISOR = "Sun Jan 10 15:06:54 PST 2016"
"""The date in gVisor's /proc/version (google/gvisor, pkg/sentry/syscalls/linux)."""
_SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|API_?KEY|_KEY$", re.IGNORECASE)
_SHORTEST_SECRET = 6
_PRODUCTS = {
    "colab-enterprise": "Colab Enterprise",
    "workbench": "Vertex AI Workbench",
    "kaggle": "Kaggle",
    "sagemaker": "Amazon SageMaker",
}


def collect_machine_info(
    environ: Environ, root: Path = Path("/"), *, with_torch: bool = False
) -> Readings:
    """Return the document `provision.env/1`, redacted; imports nothing that is installed.

    With `with_torch`, torch is imported in another process.
    """
    with tempfile.TemporaryDirectory(
        prefix="provision-probe-", ignore_cleanup_errors=True
    ) as scratch:
        context = ObserverContext(
            expected=_nothing_declared(), scratch=Path(scratch), root=root, environ=environ
        )
        seen, unread = _observed(context)
        reported = {
            key: value
            for key, value in {
                **seen,
                **_python(),
                "place.product": _product(environ, root),
                "place.container": find_container(environ, root),
                "place.machine": _machine(root),
                **_cuda(environ, root),
            }.items()
            if class_of_reading(key) or key in _OWN
        }
        redactor = Redactor.of(environ, _secrets(environ))
        document: Readings = {
            "schema": SCHEMA,
            "probe_sha256": own_digest(),
            "readings": dict(sorted(reported.items())),
            "unread": sorted(unread),
            "packages": _packages(),
            "torch": _torch(Path(scratch), environ) if with_torch else None,
        }
    private: Readings = redactor.tree(document)
    return {**private, "schema": SCHEMA, "probe_sha256": document["probe_sha256"]}


def inspect_torch() -> Readings:
    """Import torch and return what it reports; {"error": ...} if that fails."""
    try:
        import torch
    except BaseException as error:  # noqa: BLE001
        return {"error": f"importing torch failed: {type(error).__name__}: {error}"[:_TAIL]}

    readings: Readings = {}
    context = ObserverContext(expected=_nothing_declared(), scratch=Path())
    observers = observers_of("torch")
    for name, observer in {
        **{name: observers[name] for name in ("T01", "T02", "T03")},
        "gpu.name": _cards_by_torch,
    }.items():
        try:
            readings.update(observer(context))
        except Exception as error:  # noqa: BLE001
            readings[f"{name}.error"] = f"{type(error).__name__}: {error}"[:_TAIL]
    cudnn = torch.backends.cudnn.version() if torch.backends.cudnn.is_available() else None
    return {
        **{key: value for key, value in readings.items() if not key.startswith("_")},
        "torch.cudnn": cudnn,
        "torch.threads": torch.get_num_threads(),
    }


def _cards_by_torch(_: ObserverContext) -> Readings:
    import torch

    names = (
        {torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())}
        if torch.cuda.is_available()
        else ()
    )
    return {"gpu.name": " + ".join(sorted(names)) or None}


def _observed(context: ObserverContext) -> tuple[Readings, list[str]]:
    """Return the readings of all observers of machine and driver, and the names of failed ones."""
    seen: Readings = {}
    unread = []
    for stage in ("host", "driver"):
        for name, observer in observers_of(stage).items():
            try:
                seen.update(observer(context))
            except Exception:  # noqa: BLE001
                unread.append(name)
    return seen, unread


def _nothing_declared() -> Expectations:
    return Expectations(
        tool={},
        spec={},
        lock={},
        target={},
        tier=Tier.INVENTORY,
        timeout_s=60,
        nonce="",
        python_version=platform.python_version(),
        python_prefix=sys.prefix,
        platform="",
        flavour=None,
        glibc_min=None,
        packages={},
        direct=(),
        extras_allowed=frozenset(),
        gpu_type=None,
        gpu_count=0,
        requires=DeclaredMinima(None, None, None, None, None, None),
        paths={},
        env={},
        secrets=(),
        training=DeclaredTraining("none", "fp32", 0, False, "", {}),
    )


def _secrets(environ: Environ) -> list[str]:
    """Return the values of variables whose names mean a secret; short ones do not count."""
    return [
        name
        for name, value in environ.items()
        if len(value) >= _SHORTEST_SECRET
        and _SECRET.search(name)
        and not name.startswith("TOKENIZERS_")
    ]


def _python() -> Readings:
    kind = "system"
    if sys.prefix != sys.base_prefix:
        kind = "virtual environment"
    elif os.path.isdir(os.path.join(sys.prefix, "conda-meta")):
        kind = "conda"
    return {
        "python.version": platform.python_version(),
        "python.implementation": sys.implementation.name,
        "python.executable": sys.executable,
        "python.environment": kind,
    }


def _product(environ: Environ, root: Path) -> str | None:
    place = find_place(environ, root)
    if place == "colab":
        return f"Google Colab {environ.get('COLAB_RELEASE_TAG', '')}".strip()
    return _PRODUCTS.get(place or "")


def _machine(root: Path) -> str | None:
    version = read_text(root / "proc/version")
    if "gvisor" in version.lower() or _GVISOR in version:
        return "gVisor"
    if "microsoft" in version.lower():
        return "WSL"
    folder = root / "sys/class/dmi/id"
    return (
        f"{read_text(folder / 'sys_vendor')} {read_text(folder / 'product_name')}".strip() or None
    )


def _cuda(environ: Environ, root: Path) -> Readings:
    named: Readings = {f"variable.{name}": environ.get(name) for name in _PATHS if name in environ}
    try:
        document = json.loads(read_text(root / "usr/local/cuda/version.json"))
        named["cuda.toolkit"] = document["cuda"]["version"]
    except (ValueError, LookupError, TypeError):
        named["cuda.toolkit"] = None
    return named


def _packages() -> dict[str, str]:
    distributions = active_distributions(find_distributions(sys.path))
    return {
        name: dist.version
        for name, dist in sorted(distributions.items())
        if name in REPORTED_PACKAGES or name.startswith("nvidia-")
    }


def _torch(scratch: Path, environ: Environ) -> Readings:
    """Import torch in another process, whose death is a result."""
    out = scratch / "torch.json"
    try:
        done = subprocess.run(
            [sys.executable, *own_command(), "torch", "--out", str(out)],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TORCH_TIMEOUT_S,
            check=False,
            env=dict(environ),
        )
    except subprocess.TimeoutExpired:
        return {"error": f"importing torch did not end within {_TORCH_TIMEOUT_S} s"}
    try:
        reported: Readings = json.loads(out.read_text(encoding="utf-8"))
        return reported
    except (OSError, ValueError):
        ending = f"ended with exit code {done.returncode}"
        if done.returncode < 0:
            ending = f"was ended by signal {-done.returncode}"
        output = (done.stderr or done.stdout).strip()[-_TAIL:]
        return {"error": f"importing torch {ending}: {output}".rstrip(": ")}


_OWN = frozenset(
    {
        "python.executable",
        "python.environment",
        "place.product",
        "place.container",
        "place.machine",
        "cuda.toolkit",
        *(f"variable.{name}" for name in _PATHS),
    }
)
"""Keys that no report has."""
