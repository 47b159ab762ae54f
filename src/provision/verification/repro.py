"""A failed check as a program of its own: which of templates/repro/ shows it, and with which values. The values are data in one literal of the program."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from provision.assets import asset
from provision.errors import Refused
from provision.probe.checks.driver import CARD_USED, VRAM_SHARE
from provision.probe.checks.host import NOFILE_FLOOR, RAM_SHARE
from provision.probe.checks.numerics import BF16_ERROR, FP32_ERROR, TF32_ERROR
from provision.probe.judging.cards import memory_band
from provision.probe.observing.compiling import COMPILERS_OF_CARDS, COMPILERS_OF_CPUS
from provision.probe.observing.speed import FORMATS
from provision.probe.proofs.trainer import CHECKPOINT_FILES
from provision.verification.report import Report

HERE = '{"CASE": "HERE"}'
SHOWN = ("fail", "warn")
_MOST = 5
_RAISED = "no exception"


class Failed(NamedTuple):
    """A check that failed, its report's readings and parts, and the expectations that were sent with it ({} where they are not at hand)."""

    check: Mapping[str, Any]
    readings: Mapping[str, Any]
    document: Mapping[str, Any]
    promised: Mapping[str, Any]

    @property
    def expected(self) -> Any:
        """What the check expected."""
        return self.check.get("expected")

    @property
    def observed(self) -> Any:
        """What it observed."""
        return self.check.get("observed")

    def of(self, part: str, name: str) -> Any:
        """Return a value of a part of the expectations, or None."""
        block = self.promised.get(part)
        return block.get(name) if isinstance(block, Mapping) else None


class _Lacking(Exception):
    """The values that the program needs are not in the report."""


def repro(report: Report, name: str, promised: Mapping[str, Any]) -> str:
    """Return a program that ends with 1 while what the check `name` has found is there, and with 0 when it is mended.

    `promised` are the expectations that the report answers, {} where they are not at hand. Raises Refused where the report has no such failure, or no short
    program shows it, with the reason.
    """
    check = _named(report, name)
    identity = name.partition(":")[0]
    if identity in WITHOUT or identity not in PROGRAMS:
        why = WITHOUT.get(identity, "no short program of its own shows what it found")
        raise Refused(f"there is no program for {name}", why=why, hint=f"provision verify SPEC --only {identity} repeats it")
    program, values = PROGRAMS[identity]
    readings = {str(one.get("key")): one.get("value") for one in report.document["readings"] if isinstance(one, Mapping)}
    try:
        case = values(Failed(check, readings, report.document, promised))
    except (_Lacking, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        why = str(error) if isinstance(error, _Lacking) else "the values that it needs are not in the report"
        raise Refused(f"there is no program for {name} of this report", why=why, hint=f"provision verify SPEC --only {identity} repeats it") from None
    return _written(program, {"about": f"{name} {check.get('title')}: {check.get('message')}"[:300], **case})


def _named(report: Report, name: str) -> Mapping[str, Any]:
    checks = [check for check in report.document["checks"] if isinstance(check, Mapping)]
    failed = [str(check.get("id")) for check in checks if check.get("status") in SHOWN]
    check = next((check for check in checks if check.get("id") == name), None)
    hint = f"it holds: {', '.join(failed[:12])}" if failed else "nothing failed in it"
    if check is None:
        raise Refused(f"the report has no check {name}", hint=hint)
    if check.get("status") not in SHOWN:
        raise Refused(f"{name} did not fail", why=f"it ended as {check.get('status')}", hint=hint)
    return check


def _written(program: str, case: Mapping[str, Any]) -> str:
    template = asset(f"templates/repro/{program}.py").read_text(encoding="utf-8")
    literal = repr(dict(case))
    if ast.literal_eval(literal) != case:
        raise Refused("there is no program for this check", why="its values cannot be written as data")
    return template.replace(HERE, literal)


def _limit(what: str, least: Callable[[Failed], float], unit: str) -> Callable[[Failed], dict[str, Any]]:
    return lambda failed: {"what": what, "least": least(failed), "unit": unit}


def _memory(failed: Failed) -> dict[str, Any]:
    total, limit = failed.readings.get("host.ram_bytes"), failed.readings.get("host.cgroup_ram_bytes")
    contained = limit is not None and total is not None and limit < total
    return {"what": "memory", "least": failed.expected if contained else int(failed.expected * RAM_SHARE.value), "unit": "bytes"}


def _shared_memory(failed: Failed) -> dict[str, Any]:
    if not isinstance(failed.expected, int | float):
        raise _Lacking("how /dev/shm is mounted, and who may write there, ls -ld /dev/shm shows")
    return {"what": "shared memory", "least": int(failed.expected), "unit": "bytes"}


def _disk(failed: Failed) -> dict[str, Any]:
    if not isinstance(failed.observed, Mapping):
        raise _Lacking("how many files and bytes a disk still takes, df -i and df -h show")
    paths = failed.promised.get("paths") or {}
    places = [paths.get(place.removeprefix("path."), "") if place.startswith("path.") else place for place in failed.observed]
    known = [place for place in places if place and place != "hf_cache"]
    if not known:
        raise _Lacking("the report does not say which folder is short of space; expectations.json beside it would")
    return {"what": "disk", "least": failed.expected, "unit": "bytes", "places": known}


def _person(failed: Failed) -> dict[str, Any]:
    return {"home": True} if failed.expected == "writable" else {"utf8": True}


def _folders(failed: Failed) -> dict[str, Any]:
    paths = failed.promised.get("paths") or dict(re.findall(r"(\S+) \(([^()]+)\) is ", str(failed.check["message"])))
    folders = [paths[name] for name, state in failed.observed.items() if state != "writable" and name in paths]
    if not folders:
        raise _Lacking("the report does not name the folder")
    return {"folders": folders[:_MOST]}


def _declared(failed: Failed) -> dict[str, Any]:
    differing = {name: value for name, value in failed.expected.items() if failed.observed.get(name) != value}
    if any(value == "set" for value in differing.values()):
        raise _Lacking("a secret is among the variables, and secrets are not in reports")
    return {"unset": [], "set": differing}


def _driver(failed: Failed) -> dict[str, Any]:
    if str(failed.check["id"]) == "D02":
        return {"driver": failed.expected, "count": None}
    return {"driver": None, "count": int(str(failed.expected).partition(" x ")[0])}


def _interpreter(failed: Failed) -> dict[str, Any]:
    python, under, prefix = str(failed.expected).partition(" under ")
    if not under:
        raise _Lacking("which Python an environment was made with, its pyvenv.cfg tells")
    return {"python": python, "prefix": prefix}


def _versions(failed: Failed) -> dict[str, Any]:
    differing = {str(one["name"]): str(one["expected"]) for one in failed.document["packages"]["differences"]}
    if not differing:
        raise _Lacking("the report does not name the packages that differ")
    return {"packages": dict(list(differing.items())[:_MOST])}


def _shadowed(failed: Failed) -> dict[str, Any]:
    modules = [one.partition(" from ")[0] for one in failed.observed if " from " in one]
    if not modules:
        raise _Lacking("nothing is imported in another's place; packages that are not locked stop no program")
    return {"modules": modules[:_MOST]}


def _unmet(failed: Failed) -> dict[str, Any]:
    found = [match.groups() for one in failed.observed if (match := re.match(r"(\S+) \S+ needs ([^\s;]+?),? (?:installed is|which|and|is)", one))]
    if not found:
        raise _Lacking("the report does not name the requirement")
    return {"requirements": [list(pair) for pair in found[:_MOST]]}


def _files(failed: Failed) -> dict[str, Any]:
    if failed.check["status"] != "fail":
        raise _Lacking("files that no package lists stop no program")
    return {"files": [str(one) for one in failed.observed[:_MOST]]}


def _import(failed: Failed) -> dict[str, Any]:
    if failed.expected != _RAISED and failed.check.get("cause") and "imported" in str(failed.check["message"]):
        raise _Lacking("it imports, from another file or in another version than its metadata says; the message names both")
    return {"packages": [str(failed.check["id"]).partition(":")[2]]}


def _build(failed: Failed) -> dict[str, Any]:
    if failed.expected == _RAISED:
        return {"version": failed.readings.get("package.torch") or "", "flavour": None}
    return {"version": failed.expected["version"], "flavour": failed.expected["flavour"]}


def _cards(failed: Failed) -> dict[str, Any]:
    identity, wanted = str(failed.check["id"]), failed.expected
    if failed.of("gpu", "type") == "mps":
        raise _Lacking("the program is for NVIDIA's cards")
    case: dict[str, Any] = {"count": None, "name": None, "least_bytes": None, "most_bytes": None, "capability": None}
    if identity == "T02":
        return {**case, "count": int(str(wanted).partition(" x ")[0])}
    if identity == "D03":
        if not str(wanted)[:1].isalpha():
            raise _Lacking("a compute capability is asked for, which nvidia-smi --query-gpu=compute_cap shows")
        return {**case, "name": wanted}
    if identity == "T05":
        return {**case, "capability": list(FORMATS[wanted])}
    if identity != "D04":
        return case
    if str(failed.check["message"]).endswith(" declared"):
        return {**case, "least_bytes": int(wanted * VRAM_SHARE)}
    least, most = memory_band(wanted)
    return {**case, "least_bytes": int(least), "most_bytes": int(most)}


def _compilers(failed: Failed) -> dict[str, Any]:
    card = failed.of("gpu", "type") or failed.readings.get("gpu.name")
    return {"variables": ["CC", "CXX"] if card else ["CXX"], "compilers": list(COMPILERS_OF_CARDS if card else COMPILERS_OF_CPUS)}


def _loaded(failed: Failed) -> dict[str, Any]:
    if failed.check["expected"] == 1:
        return {"libraries": [], "openmp": list(failed.observed)}
    return {"libraries": [str(path) for path in failed.observed], "openmp": []}


def _products(failed: Failed) -> dict[str, Any]:
    tf32 = failed.expected.get("fp32") == TF32_ERROR.value if isinstance(failed.expected, Mapping) else False
    bounds = {"fp32": (TF32_ERROR if tf32 else FP32_ERROR).value, "bf16": BF16_ERROR.value}
    return {"device": failed.readings.get("numerics.device") or "cpu", "bounds": {"fp32": bounds["fp32"]} if failed.check["id"] == "N02" else bounds}


def _training(failed: Failed) -> dict[str, Any]:
    identity, proof = str(failed.check["id"]), str(failed.document["subject"].get("proof"))
    if proof != "hf-trainer":
        raise _Lacking(f"the program trains by Trainer, and the proof asked for is {proof}")
    declared = {"R03": "fp32"}.get(identity, failed.of("training", "precision") or "fp32")
    case: dict[str, Any] = {"precision": declared, "dtype": None, "arguments": {}, "files": [], "twice": identity == "R04"}
    if identity == "R01" and failed.expected != _RAISED:
        return {**case, "arguments": _arguments(failed)}
    if identity == "R03":
        return {**case, **_precision(failed)}
    return {**case, "files": list(CHECKPOINT_FILES)} if identity == "R06" else case


def _arguments(failed: Failed) -> dict[str, Any]:
    given = failed.of("training", "arguments") or {}
    if not given:
        raise _Lacking("the report holds the names of the arguments and not their values; expectations.json beside it would")
    return {str(name): value for name, value in given.items() if name not in ("output_dir", "push_to_hub", "report_to")}


def _precision(failed: Failed) -> dict[str, Any]:
    named = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
    if failed.expected not in named:
        raise _Lacking(f"{failed.expected} shows on a card only")
    return {"precision": named[failed.expected], "dtype": failed.expected}


PROGRAMS: Mapping[str, tuple[str, Callable[[Failed], dict[str, Any]]]] = {
    "H01": ("system", lambda failed: {"platform": failed.expected}),
    "H02": ("system", lambda failed: {"glibc": str(failed.expected).removeprefix(">=")}),
    "H04": ("limits", _limit("CPUs", lambda failed: float(failed.expected), "for as many DataLoader workers")),
    "H05": ("limits", _memory),
    "H06": ("limits", _disk),
    "H07": ("limits", _shared_memory),
    "H08": ("limits", _limit("open files", lambda _: int(NOFILE_FLOOR.value), "files")),
    "H10": ("system", _person),
    "W01": ("paths", _folders),
    "E01": ("variables", lambda failed: {"unset": list(failed.observed), "set": {}}),
    "E02": ("variables", _declared),
    "D01": ("driver", _driver),
    "D02": ("driver", _driver),
    "D05": ("cards", lambda _: {"what": "errors"}),
    "D06": ("cards", lambda _: {"what": "slowed"}),
    "D08": ("cards", lambda _: {"what": "used", "most": CARD_USED.value}),
    "P01": ("interpreter", _interpreter),
    "P02": ("versions", _versions),
    "P03": ("shadowed", _shadowed),
    "P04": ("requirements", _unmet),
    "P06": ("imports", _import),
    "P07": ("files", _files),
    "P08": ("libraries", _loaded),
    "T01": ("torch_build", _build),
    "T02": ("gpu", _cards),
    "T03": ("gpu", _cards),
    "T05": ("gpu", _cards),
    "D03": ("gpu", _cards),
    "D04": ("gpu", _cards),
    "N01": ("products", _products),
    "N02": ("products", _products),
    "N06": ("products", _products),
    "L01": ("loaders", lambda _: {"method": "fork"}),
    "L02": ("loaders", lambda _: {"method": "spawn"}),
    "L03": ("loaders", lambda _: {"method": "forkserver"}),
    "K01": ("compiler", _compilers),
    "R01": ("trainer", _training),
    "R02": ("trainer", _training),
    "R03": ("trainer", _training),
    "R04": ("trainer", _training),
    "R06": ("trainer", _training),
}
"""By a check's id: the program of templates/repro/ that shows it, and what gives its values."""

WITHOUT: Mapping[str, str] = {
    "Y01": "a secret is fetched by provision itself, and its variable is set for `provision run` only",
    "D09": "how a card is set up stops no program by itself; nvidia-smi -q shows it",
    "R05": "resuming takes a run, a checkpoint and a second process, which is no short program",
    **dict.fromkeys(
        ("M01", "M02", "B01", "B02", "F01", "F02", "F03"), "what a card holds, moves and computes takes its whole memory, a clock and its data sheet"
    ),
    **dict.fromkeys(("C01", "C02", "C03"), "a process for each card, started together, is no short program"),
    **dict.fromkeys(("S01", "S02", "S03"), "the declared model and an estimate of its memory are no short program"),
    **dict.fromkeys(("R12", "R13"), "adapters and strategies take a whole run, or several processes"),
    "R07": "which options are in effect is asked of a whole run with all that the spec declares",
}
"""Checks that no short program shows, each with the reason."""
