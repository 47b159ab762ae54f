"""How a training fits its targets: as text, as data and as a page with a bar for each resource."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from provision.sanitize import escape_line
from provision.spelling import pluralize
from provision.verification.fit_model import ResourceFit, RunFigures, TargetFit, format_size
from provision.views.formatting import Style, Styler, indent_rest, map_strings, wrap

SCHEMA = "provision.fit/1"
_VERDICTS = {True: "fits", False: "does not fit", None: "unknown"}
_STYLES = {True: Style.GOOD, False: Style.ERROR, None: Style.WARNING}
_WORDS = {True: "FITS EVERYWHERE", False: "DOES NOT FIT", None: "NOT FULLY KNOWN"}
_TONES = {True: "verified", False: "failed", None: "unverified"}
_BAR_WIDTH = 100.0
_LABEL_WIDTH = 13


class FitBar(NamedTuple):
    """One resource as a bar: the share of the scale that is needed, and the one that exists."""

    name: str
    verdict: str
    tone: str
    needed: float
    available: float | None
    sentence: str
    details: tuple[str, ...]


def render_text(
    targets: Sequence[TargetFit], run: RunFigures | None, color: bool, width: int
) -> str:
    """Return the comparison for a terminal of `width` cells."""
    return "\n".join(_lines(targets, run, Styler(color), width)) + "\n"


def to_json(spec: str, targets: Sequence[TargetFit], run: RunFigures | None) -> dict[str, Any]:
    """Return the comparison as data; sizes are in bytes."""
    return {
        "version": 1,
        "schema": SCHEMA,
        "spec": spec,
        "run": None if run is None else _run_to_json(run),
        "targets": [
            {
                "target": target.target,
                "kind": target.kind,
                "fits": target.fits,
                "resources": [_resource_to_json(resource) for resource in target.resources],
                "not_counted": list(target.not_counted),
            }
            for target in targets
        ],
    }


def render_page(spec: str, targets: Sequence[TargetFit], run: RunFigures | None) -> str:
    """Return the comparison as one self-contained page. Every string in it is safe and escaped."""
    from provision.views.report.html import render_template  # for a page alone

    verdict = _overall(targets)
    rows = [(target.target, target.kind, target.fits, _bars(target)) for target in targets]
    return render_template(
        "fit.html.j2",
        spec=escape_line(spec),
        word=_WORDS[verdict],
        tone=_TONES[verdict],
        run=escape_line(describe_run(run)),
        targets=map_strings(rows, escape_line),
        words=_VERDICTS,
    )


def summarize_target(target: TargetFit) -> str:
    """Return the resources of a target in one line, those that do not fit first."""
    parts = []
    for resource in sorted(target.resources, key=lambda resource: resource.fits is not False):
        text = f"{resource.resource.value} {format_size(resource.need.bytes)}"
        if resource.available is not None:
            text += f" of {format_size(resource.available.bytes)}"
        parts.append(text if resource.fits is not False else f"{text} (does not fit)")
    return f"{target.target}: {', '.join(parts)}"


def describe_run(run: RunFigures | None) -> str:
    """Return the origin of the measurements in one line."""
    if run is None:
        return "No run is recorded; the needs are estimated or come from `requires` in the spec."
    target = run.target
    if run.is_of_other_spec:
        target += f" of a different spec ({run.spec})"
    machine = ""
    if run.ram_here is not None:
        had, here = (format_size(size) for size in (min(run.ram_limits), run.ram_here))
        machine = f", on a machine with {had} of RAM (this one has {here})"
    title = f"{run.program or 'a program'}, target {target}, {run.created}{machine}."
    if not run.has_peaks:
        return f"Not measured, because it ended too soon: {title}"
    newer = ""
    if run.newer_without_peaks:
        runs = pluralize(run.newer_without_peaks, "newer run")
        newer = f" Ignored {runs} without a measured peak."
    return f"Measured: {title}{newer}"


def _overall(targets: Sequence[TargetFit]) -> bool | None:
    verdicts = [target.fits for target in targets]
    if False in verdicts:
        return False
    return None if None in verdicts else True


def _lines(
    targets: Sequence[TargetFit], run: RunFigures | None, styler: Styler, width: int
) -> Iterator[str]:
    yield from wrap(escape_line(describe_run(run)), width)
    for target in targets:
        yield ""
        yield f"{styler(escape_line(target.target), Style.STRONG)} ({escape_line(target.kind)})"
        if not target.resources:
            yield "  the needs of the training run are unknown on this target"
        for resource in target.resources:
            verdict = styler(_verdict(resource), _STYLES[resource.fits])
            name = f"  {resource.resource.value:<{_LABEL_WIDTH}} "
            yield f"{name}{verdict}: {escape_line(_summarize(resource))}"
            for text in (*_details(resource), *_advice(resource)):
                rows = wrap(escape_line(text), width - len(name))
                yield from indent_rest(" " * len(name), rows, len(name))
        if target.not_counted:
            text = f"not counted: {'; '.join(target.not_counted)}"
            yield from indent_rest("  ", wrap(escape_line(text), width - 2), 2)


def _verdict(resource: ResourceFit) -> str:
    return "size unknown" if resource.available is None else _VERDICTS[resource.fits]


def _summarize(resource: ResourceFit) -> str:
    """Return the need, the size and the margin in one line."""
    need, available, margin = resource.need, resource.available, resource.margin
    least = "at least " if need.is_minimum else ""
    text = f"needs {least}{format_size(need.bytes)} ({need.origin.value})"
    if available is None or margin is None:
        return text
    left = f"{format_size(abs(margin))} {'left' if margin >= 0 else 'too little'}"
    return f"{text}, has {format_size(available.bytes)}: {left}"


def _details(resource: ResourceFit) -> Iterator[str]:
    """Yield the needs with their origins, and the provider of the size."""
    for need in resource.needs:
        size = format_size(need.bytes)
        yield f"{need.origin.value}: {need.detail}, {size}"
    if resource.available is not None:
        yield f"has: {resource.available.provider} ({resource.available.source})"


def _advice(resource: ResourceFit) -> Iterator[str]:
    for text in resource.savings:
        yield f"help: {text}"


def _bars(target: TargetFit) -> tuple[FitBar, ...]:
    bars = []
    for resource in target.resources:
        has = resource.available.bytes if resource.available else None
        scale = max(resource.need.bytes, has or 0, 1) / _BAR_WIDTH
        tone = {True: "pass", False: "fail", None: "warn"}[resource.fits]
        bars.append(
            FitBar(
                resource.resource.value,
                _verdict(resource),
                tone,
                round(resource.need.bytes / scale, 2),
                None if has is None else round(has / scale, 2),
                _summarize(resource),
                (*_details(resource), *_advice(resource)),
            )
        )
    return tuple(bars)


def _run_to_json(run: RunFigures) -> dict[str, Any]:
    return {
        "path": run.path,
        "program": run.program,
        "spec": run.spec,
        "target": run.target,
        "created_utc": run.created,
        "memory_ran_out": run.is_killed,
    }


def _resource_to_json(resource: ResourceFit) -> dict[str, Any]:
    available = resource.available
    return {
        "resource": resource.resource.name.lower(),
        "fits": resource.fits,
        "margin_bytes": resource.margin,
        "need_bytes": resource.need.bytes,
        "needs": [
            {
                "bytes": need.bytes,
                "origin": need.origin.value,
                "detail": need.detail,
                "minimum": need.is_minimum,
            }
            for need in resource.needs
        ],
        "available": None
        if available is None
        else {
            "bytes": available.bytes,
            "provider": available.provider,
            "source": available.source,
        },
        "savings": list(resource.savings),
    }
