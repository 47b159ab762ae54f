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
"""Least ratio of observed to listed size, either way: kernel, driver and ECC reserve a part. Our
choice.
"""
_MAX_CHARACTERS = 100
"""Characters of a version or a name. Our choice."""
_VERSION = re.compile(r"\d{1,5}(\.\d{1,5}){1,3}")
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

    def text(self, key: str) -> str:
        """Return a reading that is a short string; "" if there is none."""
        value = self.readings.get(key)
        return value if isinstance(value, str) and len(value) <= _MAX_CHARACTERS else ""

    def version(self, key: str) -> str:
        """Return a reading that is a version; "" if there is none."""
        text = self.text(key)
        return text if _VERSION.fullmatch(text) else ""

    def size(self, key: str) -> int:
        """Return a reading that is a number of bytes; 0 if there is none."""
        value = self.readings.get(key)
        return value if type(value) is int and value > 0 else 0

    @property
    def system(self) -> str:
        """The operating system by its name in the facts; "" if there is none.

        A report contains its id and the first number of its version.
        """
        name, version = self.text("os.id"), self.text("os.version")
        if not name or not version:
            return ""
        systems = [self.runtime.os] if self.runtime else []
        for system in (*systems, *self.facts.systems):
            if system.split(".")[0].lower() == f"{name} {version}".lower():
                return system
        return f"{name} {version}"

    @property
    def observed_card(self) -> Card | None:
        """The GPU of the report, by nvidia-smi's name on Colab; None if it is not listed."""
        name = self.text("gpu.name")
        for shape in self.facts.shapes:
            if name and shape.device == name:
                return self.facts.card(shape.card)
        return None


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


def _list_differences(observed: _Observed, context: TargetContext) -> Iterator[FactDifference]:
    runtime, shape, card, text = observed.runtime, observed.shape, observed.card, observed.text
    if runtime is not None:
        # An isolated environment has its own Python and torch.
        if observed.target.isolation == "system":
            yield from _compare_text("Python", runtime.python, text("python.version"))
            locked = context.lock.versions(context.environment).get("torch", "").partition("+")[0]
            if locked == runtime.torch:  # else the lock has replaced the torch of the runtime
                torch = text("package.torch").partition("+")[0]
                yield from _compare_text("torch", runtime.torch, torch)
        yield from _compare_text("the system", runtime.os, observed.system)
        yield from _compare_text("glibc", runtime.glibc, text("host.glibc"))
    if card is not None:
        driver, device = observed.facts.conditions[_DRIVER].value, shape.device if shape else ""
        capability = text("gpu.compute_capability")
        yield from _compare_text("the NVIDIA driver", driver, text("driver.version"))
        yield from _compare_text("the GPU", device, text("gpu.name"))
        yield from _compare_text("its compute capability", card.cc, capability)
    if shape is not None:
        ram, vram = observed.size("host.ram_bytes"), observed.size("gpu.vram_bytes")
        yield from _compare_size("the memory", shape.ram_gib, ram)
        yield from _compare_size("the GPU memory", (shape.vram_mib or 0) / 1024, vram)


def _compare_text(what: str, listed: str, observed: str) -> Iterator[FactDifference]:
    if listed and observed and listed != observed:
        yield FactDifference(what, listed, escape_line(observed))


def _compare_size(what: str, listed: float | None, observed: int) -> Iterator[FactDifference]:
    """Yield the difference of a size in GiB from an observed one in bytes."""
    if listed and observed and not _SHARE <= observed / (listed * _GIB) <= 1 / _SHARE:
        value = f"{round(observed / _GIB, 1):g} GiB"
        yield FactDifference(what, f"{listed:g} GiB", value)


def _find_new_findings(
    target: str, spec: Spec, runtime: _Observed, observed_at: str, run_rules: RunRules
) -> tuple[Diagnostic, ...]:
    """Return the findings that only the observed values cause, not the listed ones."""
    listed = spec.model_copy(update={"targets": {target: runtime.target}})
    known = {(finding.id, finding.message) for finding in run_rules(listed, runtime.facts)}
    observed = _with_observed_card(listed, target, runtime)
    findings = {
        (finding.id, finding.message): finding
        for finding in run_rules(observed, _observed_facts(runtime, observed_at))
    }
    return tuple(finding for key, finding in findings.items() if key not in known)


def _observed_facts(observed: _Observed, created_utc: str) -> Facts:
    """Return the facts with the observed values in the rows of this runtime, machine and GPU."""
    evidence = Evidence(f"the report from {created_utc}", created_utc[:10], "high")
    facts, runtime, shape, card = observed.facts, observed.runtime, observed.shape, observed.card
    tables: dict[str, Any] = {}
    if driver := observed.version("driver.version"):
        row = facts.conditions[_DRIVER]._replace(value=driver, evidence=evidence)
        tables["conditions"] = {**facts.conditions, row.name: row}
    if runtime is not None:
        is_shared = observed.target.isolation == "system"
        python = observed.version("python.version") if is_shared else ""
        row_of_runtime = runtime._replace(
            python=python or runtime.python,
            glibc=observed.version("host.glibc") or runtime.glibc,
            os=observed.system if observed.system in facts.systems else runtime.os,
            evidence=evidence,
        )
        tables["runtimes"] = {**facts.runtimes, runtime.runtime: row_of_runtime}
    if shape is not None:
        ram, vram = observed.size("host.ram_bytes"), observed.size("gpu.vram_bytes")
        new = shape._replace(
            ram_gib=round(ram / _GIB, 1) if ram else shape.ram_gib,
            vram_mib=vram // _MIB if vram else shape.vram_mib,
            evidence=evidence,
        )
        tables["shapes"] = tuple(new if row == shape else row for row in facts.shapes)
    capability = observed.text("gpu.compute_capability")
    is_same_card = observed.observed_card in (None, card)
    if card is not None and is_same_card and capability in facts.capabilities:
        new_card = card._replace(cc=capability)
        tables["cards"] = tuple(new_card if row == card else row for row in facts.cards)
    return facts.with_tables(**tables)


def _with_observed_card(spec: Spec, target: str, observed: _Observed) -> Spec:
    """Return the spec with the observed GPU in place of the declared one."""
    card = observed.observed_card
    if card is None or observed.card is None or card == observed.card:
        return spec
    gpu = Gpu(type=card.name, count=spec.gpu.count)
    if observed.target.gpu is None:
        return spec.model_copy(update={"gpu": gpu})
    changed = observed.target.model_copy(update={"gpu": gpu})
    return spec.model_copy(update={"targets": {target: changed}})
