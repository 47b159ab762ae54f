"""Makes the pairs of pairs.yaml as documents of `provision capture` and `provision env`."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from provision.agent.probe.machine_info import REPORTED_PACKAGES

HERE = Path(__file__).parent
CAPTURED = frozenset(
    {
        *("cuda.toolkit", "hub.offline_by", "locale.encoding", "os.id", "os.version"),
        *(f"disk.{name}.free_bytes" for name in ("environment", "hf_cache", "tmp", "working")),
        *(f"driver.{name}" for name in ("cuda", "error", "major", "version")),
        *(f"folder.{name}" for name in ("hf_cache", "tmp", "working", "home")),
        *(f"folder.{name}_on" for name in ("hf_cache", "tmp", "working", "home")),
        "user.home_writable",
        *(f"gpu.{name}" for name in ("compute_capability", "count", "name", "vram_bytes")),
        *("host.cgroup_ram_bytes", "host.container", "host.cpu_affinity", "host.cpu_model"),
        *("host.glibc", "host.kernel", "host.kernel_kind", "host.nofile", "host.place"),
        *("host.platform", "host.ram_bytes", "host.shm_bytes", "place.product", "user.is_root"),
        *(f"python.{name}" for name in ("environment", "implementation", "minor", "version")),
        *("torch.cuda", "torch.git", "torch.version"),
    }
)
"""The readings of a capture; other readings are in what `provision env` prints."""


REPORTED_VARIABLES = ("CONDA_DEFAULT_ENV", "CUDA_VISIBLE_DEVICES")


class Pair(NamedTuple):
    """Two documents, the keys of which one is the cause, and the error on the second machine."""

    name: str
    a: bytes
    b: bytes
    causes: tuple[str, ...]
    error: str


def load_pairs(salt: str = "") -> Iterator[Pair]:
    """Yield the pairs; the harmless differences depend on the name of the pair and the salt."""
    for row in _read("pairs.yaml"):
        draw = random.Random(row["name"] + salt)
        harmless = draw.sample(_read("machines.yaml")["harmless"], draw.randint(5, 15))
        machine = _machine(row["machine"])
        changes = [change for change in harmless if not _touches(change, row)]
        before = _changed(machine, [row.get("both", {})])
        # A harmless change can be on either side.
        sides: tuple[list[Any], list[Any]] = ([], [])
        for change in changes:
            sides[draw.randint(0, 1)].append(change)
        a, b = _changed(before, sides[0]), _changed(before, [*sides[1], row["inject"]])
        is_captured = {*row["inject"].get("readings", {})} <= {*CAPTURED, "packages.shadowed"}
        write = _capture if is_captured else _machine_description
        yield Pair(row["name"], write(a), write(b), tuple(row["causes"]), row["error"])


def make_capture(machine: str, change: Mapping[str, Any]) -> bytes:
    """Return a capture of a machine of machines.yaml after a change."""
    return _capture(_changed(_machine(machine), [dict(change)]))


@cache
def _read(name: str) -> Any:
    return yaml.safe_load((HERE / name).read_text(encoding="utf-8"))


def _machine(name: str) -> dict[str, Any]:
    document = _read("machines.yaml")
    machine = document["machines"][name]
    return {
        "readings": {**document["readings"], **machine["readings"]},
        "packages": {**document["packages"], **machine["packages"]},
        "variables": [*document["variables"]],
        "python": machine["python"],
        "loaded": {},
    }


def _touches(change: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    """Return whether a harmless change sets what the pair sets itself."""
    for part in ("both", "inject"):
        for area in ("readings", "packages"):
            if {*change.get(area, {})} & {*row.get(part, {}).get(area, {})}:
                return True
    return False


def _changed(machine: dict[str, Any], changes: list[dict[str, Any]]) -> dict[str, Any]:
    result = {key: dict(part) for key, part in machine.items() if isinstance(part, dict)}
    result |= {"variables": [*machine["variables"]], "python": machine["python"]}
    for change in changes:
        for area in ("readings", "packages", "loaded"):
            result[area] |= change.get(area, {})
        result["variables"] += change.get("variables", [])
        result["python"] = change.get("python", result["python"])
    result["packages"] = {key: value for key, value in result["packages"].items() if value}
    return result


def _readings(machine: dict[str, Any]) -> dict[str, Any]:
    python, torch = machine["python"], machine["packages"]["torch"]
    build = torch.partition("+")[2]
    return {
        **machine["readings"],
        "python.version": python,
        "python.minor": ".".join(python.split(".")[:2]),
        "torch.version": torch,
        "torch.cuda": f"{build[2:-1]}.{build[-1]}" if build.startswith("cu") else None,
        "gpu.count": machine["readings"]["nvml.count"],
    }


def _capture(machine: dict[str, Any]) -> bytes:
    requires = _read("machines.yaml")["requires"]
    readings = _readings(machine)
    document = {
        "schema": "provision.capture/1",
        "tool": {"name": "provision", "version": "0.1.0"},
        "readings": {key: value for key, value in readings.items() if key in CAPTURED},
        "packages": {
            name: {
                "version": version,
                "origin": "pip",
                "requested": None,
                "location": "environment",
                "requires": requires.get(name, []),
            }
            for name, version in machine["packages"].items()
        },
        "modules": {
            name: {"package": name, "loaded": version, "installed": machine["packages"][name]}
            for name, version in machine["loaded"].items()
        },
        "shadowed": readings["packages.shadowed"],
        "variables": sorted(machine["variables"]),
        "unread": [],
    }
    return json.dumps(document).encode()


def _machine_description(machine: dict[str, Any]) -> bytes:
    kept = {"torch.version", "torch.cuda", "gpu.count", "python.minor", "packages.shadowed"}
    readings = _readings(machine)
    packages = {
        name: version.partition("+")[0]
        for name, version in machine["packages"].items()
        if name in REPORTED_PACKAGES or name.startswith("nvidia-")
    }
    variables = {
        f"variable.{name}": "set" for name in machine["variables"] if name in REPORTED_VARIABLES
    }
    document = {
        "schema": "provision.env/1",
        "probe_sha256": "0" * 64,
        "readings": {
            **{key: value for key, value in readings.items() if key not in kept},
            **variables,
        },
        "packages": packages,
        "torch": {"torch.version": readings["torch.version"], "torch.cuda": readings["torch.cuda"]},
        "unread": [],
        "tool": {"name": "provision", "version": "0.1.0"},
    }
    return json.dumps(document).encode()
