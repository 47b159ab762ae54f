"""Programs for checks of the interpreter and of what is installed."""

from __future__ import annotations

import re
from typing import Any

from provision.verification.repro.failed_check import (
    MAX_ITEMS,
    FailedCheck,
    NoShortProgram,
    Programs,
)


def _interpreter(failed: FailedCheck) -> dict[str, Any]:
    python, under, prefix = str(failed.expected).partition(" under ")
    if not under:
        raise NoShortProgram(
            "the short program compares releases and prefixes, and not which Python an "
            "environment was made with"
        )
    return {"python": python, "prefix": prefix}


def _versions(failed: FailedCheck) -> dict[str, Any]:
    differing = {
        str(one["name"]): str(one["expected"]) for one in failed.document["packages"]["differences"]
    }
    if not differing:
        raise NoShortProgram("the report does not name the packages that differ")
    return {"packages": dict(list(differing.items())[:MAX_ITEMS])}


def _shadowed(failed: FailedCheck) -> dict[str, Any]:
    modules = [one.partition(" from ")[0] for one in failed.observed if " from " in one]
    if not modules:
        raise NoShortProgram(
            "nothing is imported in another's place; which packages are locked is not in the report"
        )
    return {"modules": modules[:MAX_ITEMS]}


def _unmet(failed: FailedCheck) -> dict[str, Any]:
    found = [
        match.groups()
        for one in failed.observed
        if (match := re.match(r"(\S+) \S+ needs ([^\s;]+?),? (?:installed is|which|and|is)", one))
    ]
    if not found:
        raise NoShortProgram("the report does not name the requirement")
    return {"requirements": [list(pair) for pair in found[:MAX_ITEMS]]}


def _files(failed: FailedCheck) -> dict[str, Any]:
    if failed.check["status"] != "fail":
        raise NoShortProgram(
            "the short program compares files with RECORDs, and knows no file that no package lists"
        )
    if all(str(one).endswith("its RECORD was changed") for one in failed.observed):
        raise NoShortProgram(
            "the short program compares files with RECORDs, and does not know which RECORD "
            "was installed"
        )
    return {"files": [str(one) for one in failed.observed[:MAX_ITEMS]]}


def _import(failed: FailedCheck) -> dict[str, Any]:
    if not failed.raised and failed.check.get("cause") and "imported" in failed.message:
        raise NoShortProgram(
            "it imports, from another file or in another version than its metadata says"
        )
    return {"packages": [str(failed.check["id"]).partition(":")[2]]}


def _loaded(failed: FailedCheck) -> dict[str, Any]:
    if failed.check["expected"] == 1:
        return {"libraries": [], "openmp": list(failed.observed)}
    return {"libraries": [str(path) for path in failed.observed], "openmp": []}


PROGRAMS: Programs = {
    "P01": (("interpreter", _interpreter),),
    "P02": (("versions", _versions),),
    "P03": (("shadowed", _shadowed),),
    "P04": (("requirements", _unmet),),
    "P06": (("imports", _import),),
    "P07": (("files", _files),),
    "P08": (("libraries", _loaded),),
}
