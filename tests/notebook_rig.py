"""A spec with a Colab target, made for real; reports of its notebook by the real probe; and
machines that nobody has, judged by the probe's functions.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from provision.adapters import RealSystem
from provision.agent.probe.catalogue import select_checks
from provision.agent.probe.expectations import parse_expectations
from provision.agent.probe.judging import ObservationLog, judge
from provision.agent.probe.redactor import Redactor
from provision.agent.probe.report import JudgedCheck, make_report
from provision.agent.probe.report_json import canonical_digest, compact, to_canonical_json
from provision.agent.probe.report_json import expand as whole_report
from provision.commands.shared.load import LoadedSpec, load_spec
from provision.commands.shared.lock_file import read_lock
from provision.commands.shared.report_import import ImportedReport, import_report
from provision.commands.shared.target_plans import get_driver_and_context
from provision.errors import LockError, ProvisionError, Refused
from provision.targets import TargetContext
from provision.verification.device_files import expectations_of, probe_digest, probe_zipapp
from tests.applied_project import bind
from tests.rig import Bench, small_spec
from tests.support import with_bytecode

TARGETS = (
    "targets:\n  local: {{kind: local}}\n  colab: {{kind: colab, runtime: '{runtime}', "
    "isolation: {isolation}}}\n"
)
Change = Callable[[dict[str, Any]], None]
RUNTIME = "2026.07"
RUNTIMES = {"3.11": "2025.07", "3.12": "2026.07", "3.13": "latest"}
"""A runtime with each Python that Colab has had."""


def with_colab(*packages: str, runtime: str = RUNTIME, isolation: str = "venv") -> str:
    """A small spec with a local target and a Colab target; in an environment of its own any Python
    will do.
    """
    return small_spec(*packages, extra=TARGETS.format(runtime=runtime, isolation=isolation))


@dataclass
class Home:
    """A folder with a spec whose notebook was made, and the interpreter of an environment with the
    same packages.
    """

    bench: Bench
    python: Path | None = None
    said: list[str] = field(default_factory=list)

    @property
    def path(self) -> Path:
        return self.bench.folder / "spec.yaml"

    @property
    def reports(self) -> Path:
        return self.bench.own / "reports/spec.colab"

    @property
    def world(self) -> RealSystem:
        return RealSystem(self.bench.environment())

    @property
    def loaded(self) -> LoadedSpec:
        return load_spec(self.path, self.world)

    @property
    def state(self) -> dict[str, Any]:
        return dict(json.loads((self.bench.own / "state.json").read_text())["resources"])

    @property
    def nonce(self) -> str:
        return str(self.state["spec/colab#notebook"]["nonce"])

    def place(self) -> TargetContext:
        loaded = self.loaded
        lock = read_lock(loaded, self.world)
        assert lock is not None
        return get_driver_and_context(loaded, lock, "colab", self.world)[1]

    def promised(self, **changes: Any) -> dict[str, Any]:
        place = self.place()
        promised = expectations_of(
            place.spec,
            "colab",
            place.lock,
            place.environment,
            PurePosixPath("/content/.provision/env"),
        )
        shared = (
            {"shared": True}
            if "isolation: system" in self.path.read_text()
            or "isolation" not in self.path.read_text()
            else {}
        )
        return {**promised, "nonce": self.nonce, **shared, **changes}

    def receive(
        self, content: bytes, name: str = "report.json", target: str | None = None
    ) -> ImportedReport:
        return import_report(content, name, self.path, target, self.world, self.said.append)

    def snapshot(self) -> dict[str, bytes]:
        """Every file next to the spec but the lock file and the log."""
        files = (
            path
            for path in self.bench.folder.rglob("*")
            if path.is_file()
            and path.name not in ("lock", "provision.log")
            and "uv-cache" not in path.parts
        )
        return {str(path.relative_to(self.bench.folder)): path.read_bytes() for path in files}


def made(bench: Bench, text: str) -> Home:
    """Apply the local target of a spec for real, and render its notebook."""
    bench.spec(text)
    done = bench.run("apply", "spec.yaml", "--target", "local", "--yes")
    assert done.returncode == 0, done.stderr
    rendered = bench.run("apply", "spec.yaml", "--target", "colab", "--yes")
    assert rendered.returncode == 3, rendered.stdout + rendered.stderr
    return Home(bench, (bench.own / "envs/spec.local").resolve() / "bin/python")


def copied(home: Home, folder: Path) -> Home:
    """The same without the environment, in a folder of its own."""
    shutil.copytree(
        home.bench.folder, folder, ignore=shutil.ignore_patterns("uv-cache", "envs", ".cache")
    )
    bind(folder / ".provision")
    return Home(Bench(folder, home.bench.index), home.python)


def probed(home: Home, scratch: Path, **changes: Any) -> bytes:
    """The report that the real probe writes of the environment, asked as the notebook's cell asks
    it.
    """
    assert home.python is not None
    expectations = home.promised(**changes)
    expectations["python"] = {**expectations["python"], "prefix": str(home.python.parent.parent)}
    scratch.mkdir(parents=True, exist_ok=True)
    (scratch / "probe.pyz").write_bytes(with_bytecode(probe_zipapp()))
    (scratch / "expectations.json").write_text(json.dumps(expectations))
    words = [
        str(home.python),
        str(scratch / "probe.pyz"),
        "verify",
        "--expectations",
        str(scratch / "expectations.json"),
        "--out",
        str(scratch / "report.json"),
    ]
    subprocess.run(words, check=False, capture_output=True, timeout=600)
    return (scratch / "report.json").read_bytes()


def changed(content: bytes, change: Change, *, sealed: bool = True) -> bytes:
    """A report as somebody changed it; `sealed`: with digests that fit again, as one who knows how
    would write them.
    """
    document = whole_report(json.loads(content))
    change(document)
    if sealed:
        identity = {
            one["key"]: one["value"] for one in document["readings"] if one["class"] == "identity"
        }
        document["digests"] = {
            "identity": canonical_digest(identity),
            "report": canonical_digest(
                compact({key: value for key, value in document.items() if key != "digests"})
            ),
        }
    return to_canonical_json(document).encode()


def judged(promised: Mapping[str, Any], seen: Mapping[str, Any], created: str = "") -> bytes:
    """The report of a machine that was never here: what its observers would have noted, judged and
    written by the probe's own functions.
    """
    expected = parse_expectations(promised)
    checks = select_checks(expected)
    account = ObservationLog(frozenset(one.id for one in checks))
    report = make_report(
        expected,
        [JudgedCheck(one, judge(one, expected, seen, account), 0.1) for one in checks],
        seen,
        [],
        Redactor(),
        partial=False,
    )

    def as_shipped(document: dict[str, Any]) -> None:
        document["tool"]["probe_sha256"] = probe_digest()
        document["subject"]["created_utc"] = created or document["subject"]["created_utc"]

    return changed(to_canonical_json(report).encode(), as_shipped)


OF_TORCH: dict[str, Any] = {
    "gpu.formats": ["fp16"],
    "torch.flags": {},
    "attention.errors": {"math": [1.6e-3, 1e-2], "efficient": [1.7e-3, 1e-2]},
    "numerics.device": "cuda",
    **{
        f"numerics.{name}_error": error
        for name, error in (("fp32", 3e-7), ("bf16", 1.7e-3), ("fp16", 2.1e-4))
    },
    **{
        f"numerics.{name}_large_error": error
        for name, error in (("fp32", 3e-7), ("bf16", 1.7e-3), ("fp16", 2.1e-4))
    },
    **{
        f"numerics.{name}_{size}outside": 0
        for name in ("fp32", "bf16", "fp16")
        for size in ("", "large_")
    },
    "numerics.fp32_signature": 3e-7,
    "numerics.repeats": True,
    "numerics.conv_error": [3e-7, 3e-6],
    "numerics.conv_plain_error": [3e-7, 3e-6],
    "numerics.fp8_error": None,
    "numerics.unfinite": 0,
    "rng.cpu_sha": "96ab",
    "rng.cuda_sha": "11ff",
    "memory.total_bytes": 15360 * 2**20,
    "memory.free_bytes": 15200 * 2**20,
    "memory.wanted_bytes": 13 * 2**30,
    "memory.held_bytes": 13 * 2**30,
    "memory.wrong_words": 0,
    "speed.copy_gb_s": 260.0,
    "speed.to_card_gb_s": 12.0,
    "speed.from_card_gb_s": 12.5,
    "speed.format": "fp16",
    "speed.product_tflops": 48.0,
    "link.gb_s": 15.8,
    "several.alone_wrong": 0,
}
"""What a T4 would tell that computes as it should, in numbers that no bound minds."""


def machine(promised: Mapping[str, Any], **observed: Any) -> dict[str, Any]:
    """What the observers would note on a Colab machine with a T4 as the facts list it; keywords
    (with __ for dots) are what is otherwise.
    """
    installed = {package["name"]: package["version"] for package in promised["packages"]}
    nothing = (
        "shadowed",
        "elsewhere",
        "duplicates",
        "unlocked",
        "unmet",
        "unread",
        "altered",
        "without_record",
        "never_fitted",
        "stray_pth",
        "stray",
    )
    seen: dict[str, Any] = {
        "os.id": "ubuntu",
        "os.version": "22",
        "host.platform": "linux-x86_64",
        "host.glibc": "2.35",
        "host.cpus": 2,
        "host.cpu_quota": None,
        "host.ram_bytes": int(12.67 * 2**30),
        "host.cgroup_ram_bytes": None,
        "host.shm_bytes": 6 * 2**30,
        "_shm.applies": True,
        "host.nofile": 1048576,
        **dict.fromkeys(
            (
                "host.pids",
                "host.nproc",
                "host.address_space_bytes",
                "host.file_size_bytes",
                "host.cpu_time_s",
            )
        ),
        "_folder.paths": {},
        **dict.fromkeys(("folder.tmp", "folder.hf_cache"), "writable"),
        "folder.tmp_runs_programs": True,
        "credentials.files": {},
        "disk.environment.free_bytes": 70 * 2**30,
        "locale.encoding": "utf-8",
        "user.home_writable": True,
        "user.caches_in_home": [],
        "python.minor": "3.12",
        "python.version": "3.12.13",
        "python.implementation": "cpython",
        "python.prefix_matches": True,
        "_python.prefix": "/usr",
        "_python.executable": "/usr/bin/python3",
        "_packages.installed": installed,
        "packages.digest": canonical_digest(installed),
        "packages.count": len(installed),
        "packages.provenance": {"hash-checked": len(installed)},
        **{f"packages.{name}": [] for name in nothing},
        "packages.files": 100,
        "_packages.own": False,
        "_packages.others": 700,
        "packages.unmet_unlocked": [],
        "_packages.hashed": False,
        "_packages.altered_count": 0,
        **{f"package.{name}": installed.get(name) for name in promised["direct"]},
        **{f"_imported.{name}": [name] for name in promised["direct"]},
        **{f"_imported_elsewhere.{name}": [] for name in promised["direct"]},
        **{f"_imported_live.{name}": None for name in promised["direct"]},
        "torch.version": installed.get("torch"),
        "torch.cuda": "12.8",
        "torch.arch_list": "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120 compute_120",
        "gpu.available": True,
        "gpu.count": 1,
        "_gpu.names": ["Tesla T4"],
        "gpu.errors": {},
        "gpu.name": "Tesla T4",
        "gpu.compute_capability": "7.5",
        "gpu.vram_bytes": 15360 * 2**20,
        "driver.version": "580.82.07",
        "driver.major": "580",
        "driver.error": None,
        "driver.by": "nvml",
        "driver.cuda": "13.0",
        "nvml.count": 1,
        "nvml.count_all": 1,
        "nvml.names": ["Tesla T4"],
        **{
            f"nvml.{name}": [None]
            for name in (
                "remap_pending",
                "remap_failed",
                "compute_mode",
                "power_limit_mw",
                "power_default_mw",
            )
        },
        "nvml.retired_pending": [False],
        "nvml.ecc": [True],
        "nvml.pci": ["10de:1eb8"],
        "nvml.recovery": [None],
        "nvml.fabric": [None],
        "nvml.xids": None,
        "dcgm.level": None,
        "dcgm.failed": [],
        "host.kernel": "6.6.105+",
        "host.kernel_kind": "linux",
        "host.place": "colab",
        "host.container": "docker",
        "host.machine": None,
        "clock.behind": False,
        "_clock.ahead_s": -60.0,
        "_clock.file": "installed.json",
        "hub.offline_by": [],
        "libraries.outside": [],
        "libraries.openmp": ["libgomp.so.1"],
        "_libraries.count": 5,
        "_libraries.imported": True,
        "nvml.uncorrected": [0],
        "nvml.mig": [False],
        "nvml.reasons": [1],
        "nvml.used_bytes": [100 * 2**20],
        "nvml.total_bytes": [15360 * 2**20],
        **OF_TORCH,
        "torch.libraries": {
            word: version
            for word in ("cudnn", "nccl", "triton")
            for name, version in installed.items()
            if word in name
        },
        "loaders.fork_sum": None,
        "loaders.spawn_sum": None,
    }
    return {**seen, **{key.replace("__", "."): value for key, value in observed.items()}}


def refused(home: Home, content: bytes, **words: Any) -> ProvisionError:
    """The refusal of a report, which has written nothing."""
    before = home.snapshot()
    with pytest.raises((Refused, LockError)) as caught:
        home.receive(content, **words)
    assert home.snapshot() == before
    assert caught.value.hint
    return caught.value


def whole(error: ProvisionError) -> str:
    return f"{error.what}\n{error.why}\n{error.hint}"


def at(*route: str | int, value: Any) -> Change:
    """Set what stands at a route of a report."""

    def change(document: dict[str, Any]) -> None:
        for part in route[:-1]:
            document = document[part]
        document[route[-1]] = value

    return change


def of_check(wanted: str, **values: Any) -> Change:
    """Change some of what a check of a report says."""

    def change(document: dict[str, Any]) -> None:
        next(one for one in document["checks"] if one["id"] == wanted).update(values)

    return change


def of_reading(wanted: str, value: Any, *, key: str = "", kind: str = "") -> Change:
    """Change a reading of a report: its value, its name, its class."""

    def change(document: dict[str, Any]) -> None:
        row = next(one for one in document["readings"] if one["key"] == wanted)
        row |= {"key": key or wanted, "value": value, "class": kind or row["class"]}

    return change


def without(part: str, key: str, wanted: str) -> Change:
    """Leave out one row of a part of a report, and count the checks anew."""

    def change(document: dict[str, Any]) -> None:
        document[part] = [one for one in document[part] if one[key] != wanted]
        document["verdict"]["counts"] = {
            status: sum(one["status"] == status for one in document["checks"])
            for status in document["verdict"]["counts"]
        }

    return change
