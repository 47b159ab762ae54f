"""The probe as one program: packed, with the expectations narrowed to one check."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import Any

from provision.agent.probe.catalogue import is_applicable, select_checks
from provision.agent.probe.expectations import parse_expectations
from provision.agent.probe.model import ProbeError
from provision.errors import Refused
from provision.verification.device_files import probe_zipapp

CHECKS_OF_PROJECTS = frozenset({"V01", "V02"})
"""Checks of `code` and of `verify.command`."""
CHECKS_OF_REPLICAS = frozenset(f"G0{number}" for number in range(1, 9))
"""Checks that compare the machines of a job."""
_WIDTH = 150


def pack_probe_for_check(
    name: str, promised: Mapping[str, Any], tier: str
) -> tuple[dict[str, Any], str]:
    """Return the values of the program that runs one check, and the probe as text.

    Raises:
        Refused: the check runs the project's own code or compares machines, or the expectations do
            not include the check or are of another version.
    """
    if name in CHECKS_OF_PROJECTS:
        raise Refused(
            f"{name} cannot be written as a standalone program",
            why="the check tests your project's code, which a standalone program does not contain",
            hint="run your program instead: `provision run SPEC -- PROGRAM`",
        )
    if name in CHECKS_OF_REPLICAS:
        raise Refused(
            f"{name} cannot be written as a standalone program",
            why="the check compares several machines",
            hint="run the check on the target's machines: `provision verify SPEC --target TARGET`",
        )
    try:
        document = narrow_expectations(name, promised, tier)
        expected = parse_expectations(document, "expectations.json")
    except (ProbeError, TypeError, AttributeError, KeyError, ValueError) as error:
        why = (
            str(error)
            if isinstance(error, ProbeError)
            else "this version of provision does not write such expectations"
        )
        hint = f"verify again with this version: `provision verify SPEC --only {name}`"
        raise Refused(
            f"expectations.json does not contain the information needed to reproduce {name}",
            why=why,
            hint=hint,
        ) from None
    if not any(
        selected.id == name and is_applicable(selected.check, expected)
        for selected in select_checks(expected, frozenset({name}))
    ):
        hint = "pass the report's spec (--spec SPEC --target NAME)"
        raise Refused(
            f"the expectations do not include {name}",
            why=f"they are for tier {expected.tier.value} and contain nothing for this check",
            hint=hint,
        )
    return {"check": name, "expectations": document}, encode_probe(probe_zipapp())


def narrow_expectations(name: str, promised: Mapping[str, Any], tier: str) -> dict[str, Any]:
    """Return the expectations that one check needs.

    Names of the spec, its folders and its secrets are left out unless the check needs them.
    """
    identity, _, subject = name.partition(":")
    family = identity[:1]
    target = {
        key: promised["target"][key] for key in ("kind", "manager") if key in promised["target"]
    }
    training = promised["training"]
    return {
        **{key: value for key, value in promised.items() if key != "installed"},
        **({"tier": tier} if tier else {}),
        "python": {**promised["python"], "prefix": ""},
        "nonce": "",
        "spec": {},
        "lock": {},
        "target": target,
        "direct": [subject] if subject else promised["direct"],
        "paths": promised["paths"] if identity in ("W01", "H06") else {},
        "env": promised["env"] if family in ("E", "W", "X") else {},
        "secrets": promised["secrets"] if identity in ("Y01", "E02") else [],
        "training": {
            **training,
            "arguments": training["arguments"] if family in ("R", "S") else {},
        },
    }


def encode_probe(probe: bytes) -> str:
    """Return the probe's zip file as lines of text, compressed."""
    text = base64.b64encode(zlib.compress(probe, 9)).decode("ascii")
    return "\n".join(text[start : start + _WIDTH] for start in range(0, len(text), _WIDTH))
