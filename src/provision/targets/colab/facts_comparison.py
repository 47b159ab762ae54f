"""Comparison of an observed Colab runtime with the facts about it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from provision.diagnostics import Diagnostic
from provision.facts import Card, Evidence, Facts
from provision.facts.schema_platforms import ColabRuntime, ColabShape
from provision.kinds import ColabTarget, Gpu
from provision.sanitize import escape_line
from provision.spec import Spec
from provision.targets.capabilities import FactDifference, FactsComparison, RunRules
from provision.targets.colab.file_names import get_colab_target
from provision.targets.context import TargetContext

_GIB = 2**30
_MIB = 2**20
_SHARE = 0.9
"""A machine of the listed size shows at least this much, and at most as much more: kernel, driver
and ECC keep a part. Our choice.
"""
_LONGEST = 100
"""Characters of a version or a name. Our choice."""
_VERSION = re.compile(r"\d{1,5}(\.\d{1,5}){0,3}")
_DRIVER = "host driver"


class _Observed(NamedTuple):
    """A target with the facts, and the readings of a report by name."""

    target: ColabTarget
    spec: Spec
    facts: Facts
    readings: Mapping[str, Any]

    @property
    def runtime(self) -> ColabRuntime | None:
        return self.facts.runtimes.get(self.target.runtime)

    @property
    def card(self) -> Card | None:
        return None if self.spec.gpu.is_none else self.facts.card(self.spec.gpu.type)

    @property
    def shape(self) -> ColabShape | None:
        """The declared machine; a GPU that is offered in one shape only has that shape."""
        name = "none"
        if not self.spec.gpu.is_none:
            name = self.card.name if self.card else ""
        rows = [row for row in self.facts.shapes if row.card == name]
        only = rows[0] if len(rows) == 1 else None
        return next((row for row in rows if row.shape == self.target.shape), only)

    def text(self, key: str) -> str | None:
        """Return a reading that is a text of some length."""
        value = self.readings.get(key)
        return value if isinstance(value, str) and 0 < len(value) <= _LONGEST else None

    def size(self, key: str) -> int | None:
        """Return a reading that is a number of bytes."""
        value = self.readings.get(key)
        return (
            value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
        )


def compare_runtime_with_facts(
    context: TargetContext,
    spec: Spec,
    facts: Facts,
    document: Mapping[str, Any],
    run_rules: RunRules,
) -> FactsComparison:
    """Compare the report of a runtime with the facts, and run the rules on what was observed."""
    readings = {row["key"]: row["value"] for row in document["readings"]}
    runtime = _Observed(get_colab_target(context), context.effective_spec, facts, readings)
    differences = tuple(_list_differences(runtime, context))
    findings: tuple[Diagnostic, ...] = ()
    if differences:
        observed_at = str(document["subject"]["created_utc"])
        findings = _find_new_findings(context.target, spec, runtime, observed_at, run_rules)
    as_of = facts.conditions[_DRIVER].evidence.as_of
    return FactsComparison(as_of, differences, findings)


def _list_differences(seen: _Observed, context: TargetContext) -> Iterator[FactDifference]:
    runtime, shape, card = seen.runtime, seen.shape, seen.card
    if (
        runtime is not None and seen.target.isolation == "system"
    ):  # an environment of its own has a Python and a torch of its own
        yield from _text_difference("Python", runtime.python, seen.text("python.version"))
        locked = context.lock.versions(context.environment).get("torch", "").partition("+")[0]
        torch = (seen.text("package.torch") or "").partition("+")[0]
        if locked == runtime.torch and torch:  # else the lock has replaced what the runtime brought
            yield from _text_difference("torch", runtime.torch, torch)
    if runtime is not None:
        yield from _text_difference("the system", runtime.os, _system(seen, runtime))
        yield from _text_difference("glibc", runtime.glibc, seen.text("host.glibc"))
    if card is not None:
        yield from _text_difference(
            "the NVIDIA driver", seen.facts.conditions[_DRIVER].value, seen.text("driver.version")
        )
        yield from _text_difference("the GPU", shape.device if shape else "", seen.text("gpu.name"))
        yield from _text_difference(
            "its compute capability", card.cc, seen.text("gpu.compute_capability")
        )
    if shape is not None:
        yield from _size_difference(
            "the memory", shape.ram_gib, seen.size("host.ram_bytes"), _GIB, "GiB"
        )
        yield from _size_difference(
            "the memory of the GPU", shape.vram_mib, seen.size("gpu.vram_bytes"), _MIB, "MiB"
        )


def _text_difference(what: str, listed: str, found: str | None) -> Iterator[FactDifference]:
    if listed and found and listed != found:
        yield FactDifference(what, listed, escape_line(found))


def _size_difference(
    what: str, listed: float | None, found: int | None, unit: int, name: str
) -> Iterator[FactDifference]:
    if listed and found and not _SHARE <= found / (listed * unit) <= 1 / _SHARE:
        yield FactDifference(what, f"{listed:g} {name}", f"{round(found / unit, 1):g} {name}")


def _system(seen: _Observed, runtime: ColabRuntime) -> str | None:
    """Return the operating system by its name in the facts.

    A report has its id and the first number of its version.
    """
    name, version = seen.text("os.id"), seen.text("os.version")
    if not name or not version:
        return None
    said = f"{name} {version}".lower()
    known = next((row for row in seen.facts.systems if row.split(".")[0].lower() == said), None)
    return runtime.os if runtime.os.split(".")[0].lower() == said else known or f"{name} {version}"


def _find_new_findings(
    target: str, spec: Spec, runtime: _Observed, observed_at: str, run_rules: RunRules
) -> tuple[Diagnostic, ...]:
    """Return what the rules find with the observed values, and do not find with the listed ones."""
    listed = spec.model_copy(update={"targets": {target: runtime.target}})
    known = {(finding.id, finding.message) for finding in run_rules(listed, runtime.facts)}
    observed = _with_observed_card(listed, target, runtime)
    findings = {
        (finding.id, finding.message): finding
        for finding in run_rules(observed, _observed_facts(runtime, observed_at))
    }
    return tuple(finding for key, finding in findings.items() if key not in known)


def _observed_facts(seen: _Observed, when: str) -> Facts:
    """Return the facts with the observed values in the rows of this runtime, machine and GPU."""
    evidence = Evidence(f"the report of {when}", when[:10], "high")
    runtime, shape, card = seen.runtime, seen.shape, seen.card
    tables: dict[str, Any] = {}
    if (driver := seen.text("driver.version")) and _VERSION.fullmatch(driver):
        row = seen.facts.conditions[_DRIVER]
        tables["conditions"] = {
            **seen.facts.conditions,
            row.name: row._replace(value=driver, evidence=evidence),
        }
    if runtime is not None:
        tables["runtimes"] = {
            **seen.facts.runtimes,
            runtime.runtime: _runtime(seen, runtime, evidence),
        }
    if shape is not None:
        ram, vram = seen.size("host.ram_bytes"), seen.size("gpu.vram_bytes")
        new = shape._replace(
            ram_gib=round(ram / _GIB, 1) if ram else shape.ram_gib,
            vram_mib=vram // _MIB if vram else shape.vram_mib,
            evidence=evidence,
        )
        tables["shapes"] = tuple(new if row == shape else row for row in seen.facts.shapes)
    capability = seen.text("gpu.compute_capability")
    if (
        card is not None
        and capability is not None
        and capability in seen.facts.capabilities
        and _observed_card(seen) in (None, card)
    ):
        tables["cards"] = tuple(
            card._replace(cc=capability) if row == card else row for row in seen.facts.cards
        )
    return seen.facts.with_tables(**tables)


def _runtime(seen: _Observed, runtime: ColabRuntime, evidence: Evidence) -> ColabRuntime:
    own = seen.target.isolation == "venv"
    python, glibc, system = (
        seen.text("python.version"),
        seen.text("host.glibc"),
        _system(seen, runtime),
    )
    return runtime._replace(
        python=runtime.python
        if own or python is None or not _VERSION.fullmatch(python) or "." not in python
        else python,
        glibc=glibc if glibc and _VERSION.fullmatch(glibc) and "." in glibc else runtime.glibc,
        os=system if system is not None and system in seen.facts.systems else runtime.os,
        evidence=evidence,
    )


def _observed_card(seen: _Observed) -> Card | None:
    """Return the GPU of the report, by nvidia-smi's name on Colab; None if it is not listed."""
    name = seen.text("gpu.name")
    return next(
        (
            seen.facts.card(row.card)
            for row in seen.facts.shapes
            if row.device and row.device == name
        ),
        None,
    )


def _with_observed_card(spec: Spec, target: str, seen: _Observed) -> Spec:
    """Return the spec with the observed GPU in place of the declared one."""
    there = _observed_card(seen)
    if there is None or seen.card is None or there == seen.card:
        return spec
    gpu = Gpu(type=there.name, count=spec.gpu.count)
    if seen.target.gpu is None:
        return spec.model_copy(update={"gpu": gpu})
    return spec.model_copy(
        update={"targets": {target: seen.target.model_copy(update={"gpu": gpu})}}
    )
