"""Problems of one snapshot: the checks of the probe that need no lock, and harmful variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from provision.agent.core.versions import UnreadableVersion
from provision.agent.probe.checks import CHECKS
from provision.agent.probe.expectations import DeclaredMinima, DeclaredTraining, Expectations
from provision.agent.probe.judging import JUDGES
from provision.agent.probe.judging.judgement import JudgeInput
from provision.agent.probe.model import Status, Tier
from provision.agent.probe.observing.variables import HARMFUL_VARIABLES
from provision.diagnostics import Severity
from provision.facts import Facts
from provision.verification.diff.snapshot import Snapshot

JUDGED_CHECKS = (
    *("D05", "D06", "D07", "D08", "D09", "D11", "E03"),
    *("H03", "H06", "H07", "H08", "H09", "H10", "H12"),
    *("P03", "P04", "P08", "T03", "W03"),
)
"""Checks that compare readings with thresholds, and not with a spec or a lock."""
_FOLDERS = {"tmp": "TMPDIR", "hf_cache": "HF_HOME", "working": "."}
_PROGRAM_FOLDERS = {
    "working": "the working folder",
    "tmp": "the temporary folder",
    "hf_cache": "the Hugging Face cache",
}
_SEVERITIES = {Status.FAIL: Severity.ERROR, Status.WARN: Severity.WARNING}
_CATALOGUE = {check.id: check for check in CHECKS}


class Problem(NamedTuple):
    """A known requirement that one side violates.

    Attributes:
        id: The check or the rule that reports it; with `subject` it identifies the problem.
        subject: The package, variable or part that it is about.
        severity: Error, warning or info.
        message: What is wrong, with the values.
        why: The cause or the consequence.
        fix: What to do.
        keys: The readings and packages that it follows from, as patterns, the decisive one first.
        ids: The checks and rules by which symptoms of errors name it.
        source: The source of the knowledge.
    """

    id: str
    subject: str
    severity: Severity
    message: str
    why: str
    fix: str
    keys: tuple[str, ...]
    ids: tuple[str, ...]
    source: str = ""


def find_machine_problems(snapshot: Snapshot, other: Snapshot, facts: Facts) -> Iterator[Problem]:
    """Yield what the checks of machine, driver and modules report on a snapshot.

    Args:
        snapshot: The side to judge.
        other: The other side: a GPU that it has is expected here.
        facts: The effects of variables.
    """
    expected = _expectations(snapshot, other)
    readings = _JudgedReadings(snapshot.values)
    checks = [_CATALOGUE[check_id] for check_id in JUDGED_CHECKS]
    if snapshot.values.get("driver.error") is not None:
        checks.append(_CATALOGUE["D01"])
    yield from _shadowed_modules(snapshot)
    for check in checks:
        if check.id == "P03" and snapshot.kind == "capture":
            continue  # its judge does not distinguish the folders that a capture does
        if not all(expected.meets(need) for need in check.needs):
            continue
        try:
            judgement = JUDGES[check.id](JudgeInput(expected, readings))
        except (LookupError, TypeError, ValueError, AttributeError, UnreadableVersion):
            continue  # a reading is missing, or has another form than the probe's
        if judgement.status in _SEVERITIES:
            threshold = judgement.threshold or check.threshold
            keys = _failing_folders(snapshot) if check.id == "W03" else check.causes
            yield Problem(
                check.id,
                "",
                _SEVERITIES[judgement.status],
                judgement.message,
                judgement.cause or "",
                judgement.fix or "",
                keys,
                (check.id,),
                threshold.source if threshold else "",
            )
    yield from _variable_problems(snapshot, facts)
    yield from _remote_folders(snapshot)
    for key, loaded in snapshot.values.items():
        if key.startswith("loaded."):
            yield _stale_package(key.removeprefix("loaded."), loaded, snapshot)


def _variable_problems(snapshot: Snapshot, facts: Facts) -> Iterator[Problem]:
    for key, value in sorted(snapshot.values.items()):
        name = key.removeprefix("env.")
        if name == key or value is None:
            continue
        rows = facts.variables.get(name, ())
        effect = HARMFUL_VARIABLES.get(name) or next((row.effect for row in rows), "")
        # A document that has no value cannot show that the variable is switched off.
        if not effect or name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE"):
            continue
        is_harmful = name in HARMFUL_VARIABLES or any(row.severity != "info" for row in rows)
        yield Problem(
            "E01",
            name,
            Severity.WARNING if is_harmful else Severity.INFO,
            f"the variable {name} is set",
            effect,
            next((row.cure for row in rows if row.cure), "") or f"unset {name}",
            (key,),
            ("E01", "ENV010"),
            next((row.evidence.source for row in rows), ""),
        )


def _shadowed_modules(snapshot: Snapshot) -> Iterator[Problem]:
    shadowed = snapshot.values.get("packages.shadowed")
    if snapshot.kind != "capture" or not isinstance(shadowed, list) or not shadowed:
        return
    module, _, file = str(shadowed[0]).partition(" from ")
    more = f", and {len(shadowed) - 1} more" if len(shadowed) > 1 else ""
    name = file.partition(" in ")[0]
    yield Problem(
        "P03",
        "",
        Severity.ERROR,
        f"{file or 'a file of the project'} is imported instead of the module {module}{more}",
        "Python searches the program's folder (usually the working folder) and PYTHONPATH "
        "before the installed packages",
        f"rename {name or 'the file'} and delete its __pycache__, or remove its folder from "
        "PYTHONPATH",
        ("packages.shadowed", "env.PYTHONPATH"),
        ("P03",),
    )


def _failing_folders(snapshot: Snapshot) -> tuple[str, ...]:
    keys = [f"folder.{name}" for name in _PROGRAM_FOLDERS]
    usable = ("writable", "can be made")
    return tuple(key for key in keys if snapshot.values.get(key) not in usable)


def _remote_folders(snapshot: Snapshot) -> Iterator[Problem]:
    for name, words in _PROGRAM_FOLDERS.items():
        key = f"folder.{name}_on"
        kind = str(snapshot.values.get(key) or "")
        if not kind.startswith(("drive mount", "network file system")):
            continue
        is_drive = kind.startswith("drive mount")
        yield Problem(
            "W03",
            key,
            Severity.WARNING if is_drive else Severity.INFO,
            f"{words} is on a {kind}",
            "each file is a request over the network, so many small files are slow, and a lost "
            "mount stops the program with: Transport endpoint is not connected"
            if is_drive
            else "many small files are slow on it, and file locks and memory-mapped files can fail",
            "copy the data to a local disk, write checkpoints there, and copy the results back",
            (key,),
            ("W01", "W03"),
        )


def _stale_package(name: str, loaded: object, snapshot: Snapshot) -> Problem:
    installed = snapshot.packages.get(name)
    return Problem(
        "P06",
        name,
        Severity.ERROR,
        f"{name} {loaded} is loaded, but {installed or 'a different release'} is installed",
        "it was replaced after the program or notebook had imported it",
        "restart the program or the kernel",
        (f"loaded.{name}",),
        ("P06",),
    )


class _JudgedReadings(dict[str, Any]):
    """Readings with the private ones that judges need and documents do not have."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.setdefault("_shm.applies", values.get("host.shm_bytes") is not None)
        self.setdefault("_folder.paths", _FOLDERS)
        self.setdefault("_clock.ahead_s", None)
        self.setdefault("user.home_writable", True)
        for key in ("packages.elsewhere", "packages.duplicates", "packages.unlocked"):
            self.setdefault(key, [])
        if "packages.unmet" in values:
            self.setdefault("packages.unread", [])


def _expectations(snapshot: Snapshot, other: Snapshot) -> Expectations:
    """Return expectations that promise nothing but a GPU that either side has."""
    name = snapshot.values.get("gpu.name") or other.values.get("gpu.name")
    count = snapshot.values.get("gpu.count") or other.values.get("gpu.count")
    training = DeclaredTraining("hf-trainer", "fp32", 1, False, "", {})
    return Expectations(
        tool={},
        spec={},
        lock={},
        target={"kind": "local"},
        tier=Tier.INVENTORY,
        timeout_s=60,
        nonce="",
        python_version=str(snapshot.values.get("python.version") or ""),
        python_prefix="",
        platform=str(snapshot.values.get("host.platform") or ""),
        flavour=None,
        glibc_min=None,
        packages=snapshot.packages,
        direct=(),
        extras_allowed=frozenset(),
        gpu_type=str(name) if name else None,
        gpu_count=count if isinstance(count, int) else 0,
        requires=DeclaredMinima(None, None, None, None, None, None),
        paths={},
        env={},
        secrets=(),
        training=replace(training, method="full"),
    )
