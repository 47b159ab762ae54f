"""Problems of one snapshot that the facts show: torch build, card, driver and C library."""

from __future__ import annotations

from collections.abc import Iterator

from provision.diagnostics import Severity
from provision.facts import Facts
from provision.facts.compatibility import Incompatibility, IncompatibilityKind, cuda_of, flavour_of
from provision.facts.schema_torch import Card, TorchBuild
from provision.facts.versions import parse_version, require_version
from provision.verification.diff.problems import Problem
from provision.verification.diff.snapshot import Snapshot

_TORCH = ("package.torch", "torch.version", "torch.cuda")
_DRIVER = ("driver.version", *_TORCH)
_CARD = ("gpu.name", "gpu.compute_capability")
_DRIVER_IDS = ("D02", "T02", "CUD004", "CUD005", "CUD008")
_CUDNN = "package.nvidia-cudnn-cu"


def find_build_problems(snapshot: Snapshot, facts: Facts) -> Iterator[Problem]:
    """Yield why the torch of a snapshot cannot run on its card, driver and C library."""
    torch = torch_version(snapshot)
    if not torch:
        return
    yield from _glibc_problems(snapshot, torch, facts)
    yield from _cudnn_problems(snapshot, torch, facts)
    card, driver = find_card(snapshot, facts), snapshot.values.get("driver.version")
    name = snapshot.values.get("gpu.name")
    flavour = torch_flavour(snapshot, facts)
    if flavour == "cpu" and name:
        yield Problem(
            "T01",
            "",
            Severity.ERROR,
            f"torch {torch} is a CPU build, but the machine has a GPU ({name})",
            "torch then raises: Torch not compiled with CUDA enabled",
            "install torch from a PyTorch index with CUDA builds",
            _TORCH,
            ("T01", "T02", "CUD002", "CUD003"),
            "torch/cuda/__init__.py",
        )
    if card is None or not flavour or flavour == "cpu":
        return
    build = facts.build(torch, flavour, _platform(snapshot))
    for reason in facts.incompatibilities(str(driver or ""), build, card):
        problem = _incompatibility(reason, snapshot, build, torch)
        if problem is not None:
            yield problem


def torch_version(snapshot: Snapshot) -> str:
    """Return the version of torch with its build, "" without torch."""
    for key in ("torch.version", "package.torch"):
        value = snapshot.values.get(key)
        if isinstance(value, str) and parse_version(value) is not None:
            return value
    return ""


def torch_flavour(snapshot: Snapshot, facts: Facts) -> str:
    """Return the torch build of a snapshot: cpu, cu126; "" if unknown."""
    if not (torch := torch_version(snapshot)):
        return ""
    if "torch.cuda" in snapshot.values:
        cuda = snapshot.values["torch.cuda"]
        return flavour_of(cuda) if isinstance(cuda, str) else "cpu"
    release = facts.torch_release(torch)
    return release.default if release is not None and "+" not in torch else ""


def find_card(snapshot: Snapshot, facts: Facts) -> Card | None:
    """Return the card of a snapshot: that of its name, or any of its capability."""
    name, capability = (snapshot.values.get(key) for key in _CARD)
    words = str(name or "").replace("-", " ").upper().split()
    cards = [card for card in facts.cards if card.cc == capability]
    named = [
        card
        for card in cards
        if all(word in words for word in card.name.replace("-", " ").upper().split())
    ]
    return max(named, key=lambda card: len(card.name), default=next(iter(cards), None))


def _platform(snapshot: Snapshot) -> str:
    return str(snapshot.values.get("host.platform") or "").replace("arm64", "aarch64")


def _incompatibility(
    reason: Incompatibility, snapshot: Snapshot, build: TorchBuild | None, torch: str
) -> Problem | None:
    driver, name = snapshot.values.get("driver.version"), snapshot.values.get("gpu.name")
    cuda = cuda_of(build.flavour) if build else ""
    subject, built = f"torch {torch}", f"torch {torch} (CUDA {cuda})"
    keys: tuple[str, ...]
    ids: tuple[str, ...]
    newer = "use a machine or image with a newer driver, or a torch build for an older CUDA"
    match reason.kind:
        case IncompatibilityKind.NO_CODE if build is not None:
            message = f"{subject} has no code for {name}: it was built for {' '.join(build.sm)}"
            why = "kernels then fail with: no kernel image is available for execution on the device"
            fix = "install a torch build with code for this GPU"
            keys, ids = (*_TORCH, *_CARD), ("T03", "GPU005", "CUD009")
        case IncompatibilityKind.DRIVER_TOO_OLD:
            message = f"driver {driver} is too old for {built}: it needs {reason.required} or newer"
            why = "torch then reports that the driver is too old, and does not detect a GPU"
            fix, keys, ids = newer, _DRIVER, _DRIVER_IDS
        case IncompatibilityKind.PTX_NEEDS_DRIVER:
            message = (
                f"{built} has only PTX for {name}, and driver {driver} is too old to compile it: "
                f"it needs {reason.required} or newer"
            )
            why = "kernels fail with: the provided PTX was compiled with an unsupported toolchain"
            fix, keys, ids = newer, (*_DRIVER, *_CARD), _DRIVER_IDS
        case IncompatibilityKind.DRIVER_BEFORE_CARD:
            message = f"driver {driver} is older than {name}: it needs {reason.required} or newer"
            why = "the driver does not support the GPU"
            fix, keys, ids = "use a newer driver", ("driver.version", *_CARD), _DRIVER_IDS
        case IncompatibilityKind.DRIVER_AFTER_CARD:
            message = (
                f"driver {driver} no longer supports {name}; {reason.required} is the "
                "last branch that does"
            )
            why = "the driver does not find the GPU"
            fix = f"use a driver from branch {reason.required}"
            keys, ids = ("driver.version", *_CARD), _DRIVER_IDS
        case _:
            return None
    sources = "; ".join(dict.fromkeys(evidence.source for evidence in reason.evidence))
    return Problem(ids[0], reason.kind.name, Severity.ERROR, message, why, fix, keys, ids, sources)


def _glibc_problems(snapshot: Snapshot, torch: str, facts: Facts) -> Iterator[Problem]:
    glibc, release = snapshot.values.get("host.glibc"), facts.torch_release(torch)
    if release is None or not isinstance(glibc, str) or parse_version(glibc) is None:
        return
    if require_version(glibc) < require_version(release.glibc):
        yield Problem(
            "H02",
            "",
            Severity.ERROR,
            f"glibc {glibc} is older than {release.glibc}, which torch {torch} requires",
            "its libraries then fail to load: version `GLIBC_...' not found",
            "use a newer image, or an older torch",
            ("host.glibc", "os.version", "package.torch"),
            ("H02", "CUD004"),
            release.evidence.source,
        )


def _cudnn_problems(snapshot: Snapshot, torch: str, facts: Facts) -> Iterator[Problem]:
    """Compare cuDNN with the release that torch was built with, which its wheel pins."""
    release, flavour = facts.torch_release(torch), torch_flavour(snapshot, facts)
    # The table has the cuDNN of the default build; other builds of a release pin another one.
    if release is None or not release.cudnn or flavour != release.default:
        return
    for key, version in snapshot.values.items():
        if key.startswith(_CUDNN) and isinstance(version, str) and version != release.cudnn:
            name = key.removeprefix("package.")
            yield Problem(
                "T04",
                name,
                Severity.ERROR,
                f"{name} {version} is installed, but torch {torch} is built with {release.cudnn}",
                "with a cuDNN other than its own, torch raises an error, or loses speed and "
                "operators",
                f"install {name}=={release.cudnn}",
                (key, *_TORCH),
                ("T04", "P04", "PKG009"),
                release.evidence.source,
            )
