"""Programs for checks of the host, its paths, variables, secrets and network."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from provision.agent.probe.checks.host import CLOCK_SKEW, KERNEL_FLOOR, NOFILE_FLOOR, RAM_SHARE
from provision.agent.probe.observing.variables import HARMFUL_VARIABLES
from provision.verification.repro.failed_check import (
    MAX_ITEMS,
    CaseBuilder,
    FailedCheck,
    NoShortProgram,
    Programs,
)

_ANY_ANSWER, _NO_ERROR = 1000, 400


def _limit(what: str, least: Callable[[FailedCheck], float], unit: str) -> CaseBuilder:
    return lambda failed: {"what": what, "least": least(failed), "unit": unit}


def _memory(failed: FailedCheck) -> dict[str, Any]:
    total, limit = (
        failed.readings.get("host.ram_bytes"),
        failed.readings.get("host.cgroup_ram_bytes"),
    )
    contained = limit is not None and total is not None and limit < total
    return {
        "what": "memory",
        "least": failed.expected if contained else int(failed.expected * RAM_SHARE.value),
        "unit": "bytes",
    }


def _shared_memory(failed: FailedCheck) -> dict[str, Any]:
    if not isinstance(failed.expected, int | float):
        raise NoShortProgram(
            "the short program knows sizes, and not how /dev/shm is mounted or who may write there"
        )
    return {"what": "shared memory", "least": int(failed.expected), "unit": "bytes"}


def _disk(failed: FailedCheck) -> dict[str, Any]:
    if not isinstance(failed.observed, Mapping):
        raise NoShortProgram(
            "the short program does not know how many files and bytes a disk still takes"
        )
    paths = failed.expectations.get("paths") or {}
    places = [
        paths.get(place.removeprefix("path."), "") if place.startswith("path.") else place
        for place in failed.observed
    ]
    known = [place for place in places if place and place != "hf_cache"]
    if not known:
        raise NoShortProgram("the report does not say which folder is short of space")
    return {"what": "disk", "least": failed.expected, "unit": "bytes", "places": known}


def _person(failed: FailedCheck) -> dict[str, Any]:
    return {"home": True} if failed.expected == "writable" else {"utf8": True}


def _clock(failed: FailedCheck) -> dict[str, Any]:
    return {"seconds": int(CLOCK_SKEW.value), "hub": failed.expected == 0}


def _folders(failed: FailedCheck) -> dict[str, Any]:
    paths = failed.expectations.get("paths") or dict(
        re.findall(r"(\S+) \(([^()]+)\) is ", failed.message)
    )
    folders = [
        paths[name]
        for name, state in failed.observed.items()
        if state != "writable" and name in paths
    ]
    if not folders:
        raise NoShortProgram("the report does not name the folder")
    return {"folders": folders[:MAX_ITEMS]}


def _variables(**changes: Any) -> dict[str, Any]:
    return {"unset": [], "without": {}, "off": [], "given": [], "set": {}, **changes}


def _harmful(failed: FailedCheck) -> dict[str, Any]:
    # What the report tells of LD_LIBRARY_PATH is the part that does harm; the rest is how the
    # driver is found.
    part = str(failed.readings.get("env.LD_LIBRARY_PATH") or "")
    parts = (
        {"LD_LIBRARY_PATH": part.split(":")}
        if "LD_LIBRARY_PATH" in failed.observed and part
        else {}
    )
    return _variables(
        unset=[str(name) for name in failed.observed if name not in parts], without=parts
    )


def _declared(failed: FailedCheck) -> dict[str, Any]:
    differing = {
        name: value for name, value in failed.expected.items() if failed.observed.get(name) != value
    }
    if any(value == "set" for value in differing.values()):
        raise NoShortProgram("a secret is among the variables, and secrets are not in reports")
    return _variables(set=differing)


def _offline(failed: FailedCheck) -> dict[str, Any]:
    declared = failed.expectations.get("env") or {}
    return _variables(off=[str(name) for name in failed.observed if name not in declared])


def _secrets(failed: FailedCheck) -> dict[str, Any]:
    return _variables(
        given=[str(name) for name, state in failed.observed.items() if state != "set"]
    )


def _login_shell(failed: FailedCheck) -> dict[str, Any]:
    declared = failed.expectations.get("env")
    declared = declared if isinstance(declared, Mapping) else {}
    unknown = [
        name for name in failed.observed if name not in declared and name not in HARMFUL_VARIABLES
    ]
    if unknown:
        raise NoShortProgram(f"the report does not say which value of {unknown[0]} is declared")
    return {"set": {name: declared.get(name) for name in failed.observed}}


PROGRAMS: Programs = {
    "H01": (("system", lambda failed: {"platform": failed.expected}),),
    "H02": (("system", lambda failed: {"glibc": str(failed.expected).removeprefix(">=")}),),
    "H03": (("system", lambda _: {"kernel": f"{KERNEL_FLOOR.value:g}"}),),
    "H04": (
        (
            "limits",
            _limit("CPUs", lambda failed: float(failed.expected), "for as many DataLoader workers"),
        ),
    ),
    "H05": (("limits", _memory),),
    "H06": (("limits", _disk),),
    "H07": (("limits", _shared_memory),),
    "H08": (("limits", _limit("open files", lambda _: int(NOFILE_FLOOR.value), "files")),),
    "H09": (("clock", _clock),),
    "H10": (("system", _person),),
    "H11": (
        (
            "place",
            lambda failed: {"place": {"colab": "colab", "workbench": "workbench"}[failed.expected]},
        ),
    ),
    "W01": (("paths", _folders),),
    "W02": (("login_shell", _login_shell),),
    "E01": (("variables", _harmful),),
    "E02": (("variables", _declared),),
    "E03": (("variables", _offline),),
    "Y01": (("variables", _secrets),),
    "X01": (("hub", lambda _: {"below": _ANY_ANSWER}),),
    "X02": (("hub", lambda _: {"below": _NO_ERROR}),),
}
