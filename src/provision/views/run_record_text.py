"""A run's record as text: the lines at its end, and a summary with a sparkline of each curve."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from provision.sanitize import escape_line
from provision.verification.fit_model import (
    describe_arrays,
    describe_tensors,
    read_arrays,
    read_tensors,
)
from provision.verification.report import rows_of, to_number
from provision.views.formatting import format_amount, format_seconds

_STEPS = "▁▂▃▄▅▆▇█"
_MAX_CARDS = 64


class Curve(NamedTuple):
    """One curve over time; a value is None if it is not known.

    `unit` is that of the values ("bytes", "%"), `bound` the largest possible value.
    """

    name: str
    unit: str
    values: tuple[float | None, ...]
    bound: float | None
    throttled: tuple[bool, ...] = ()

    @property
    def peak(self) -> float | None:
        """The largest value."""
        return max((value for value in self.values if value is not None), default=None)


class Figure(NamedTuple):
    """A figure with its name."""

    name: str
    value: str


def render_ending(record: Mapping[str, Any]) -> list[str]:
    """Return a line on an abnormal end of a run, if it had one, and a line with its peaks."""
    seconds = format_seconds(_number(record["ended"], "seconds") or 0)
    return [*_explain_ending(record), f"peak {'; '.join(_peaks(record))}; {seconds} s"]


def render_lines(record: Mapping[str, Any], width: int) -> list[str]:
    """Return a record as lines: program, end, figures, and a sparkline of each curve."""
    lines = [format_heading(record), *_explain_ending(record)]
    lines += [f"{figure.name:<22} {figure.value}" for figure in list_figures(record)]
    chart_width = max(10, min(60, width - 50))
    for curve in read_curves(record):
        peak = format_value(curve.peak or 0.0, curve.unit)
        lines.append(f"{curve.name:<22} {render_sparkline(curve, chart_width)} to {peak}")
    return lines


def format_heading(record: Mapping[str, Any]) -> str:
    """Return the program with its target, spec and time."""
    program, subject = record["program"], record["subject"]
    command = _short_text(program.get("name"))
    if program.get("script"):
        command += f" {_short_text(program.get('script'))}"
    return (
        f"{command}, target {_short_text(subject.get('target'))} "
        f"of {_short_text(subject.get('spec'))}, {_short_text(subject.get('created_utc'))}"
    )


def list_figures(record: Mapping[str, Any]) -> list[Figure]:
    """Return the known figures of a record."""
    peaks, limits, ended = record["peaks"], record["limits"], record["ended"]
    processes = _number(peaks, "processes")
    figures = [
        ("ended", _describe_end(ended)),
        ("seconds", format_seconds(_number(ended, "seconds") or 0)),
        ("RAM, all processes", _ram(record)),
        ("RAM, largest process", _amount_of_limit(peaks.get("process_bytes"))),
        (
            "RAM, container",
            _amount_of_limit(peaks.get("container_bytes"), limits.get("container_bytes")),
        ),
        ("processes", f"{processes:.0f}" if processes else ""),
        ("shared memory", _shared_memory(record)),
    ]
    for index, card in enumerate(_cards(record)):
        figures += _card_figures(f"GPU {index}", card)
    figures += _torch_figures(rows_of(record, "torch"))
    figures.append(("arrays at the end", describe_arrays(read_arrays(record))))
    tensors = tuple(read_tensors(record))
    for place, on_gpu in (("GPU", True), ("RAM", False)):
        words = describe_tensors(one for one in tensors if one.on_gpu == on_gpu)
        figures.append((f"weights and optimizer at the end, {place}", words))
    return [Figure(name, value) for name, value in figures if value]


def read_curves(record: Mapping[str, Any]) -> list[Curve]:
    """Return the curves to draw: RAM, shared memory, and each card's memory and utilization."""
    limits, series = record["limits"], record["series"]
    curves = [Curve("RAM", "bytes", _column(series, "ram_bytes"), _ram_limit(limits))]
    shm = _column(series, "shm_bytes")
    if any(shm):
        curves.append(Curve("shared memory", "bytes", shm, _number(limits, "shm_bytes")))
    for index, card in enumerate(_cards(record)):
        throttled = tuple(map(bool, _column(series, f"card{index}_throttled")))
        used = _column(series, f"card{index}_used_bytes")
        busy = _column(series, f"card{index}_busy_percent")
        total = _number(card, "total_bytes")
        curves += [
            Curve(f"GPU {index} memory", "bytes", used, total, throttled),
            Curve(f"GPU {index} busy", "%", busy, 100.0, throttled),
        ]
    return [curve for curve in curves if curve.peak is not None]


def read_times(record: Mapping[str, Any]) -> tuple[float, ...]:
    """Return the seconds since the start of each value."""
    return tuple(value or 0.0 for value in _column(record["series"], "t"))


def render_sparkline(curve: Curve, max_width: int) -> str:
    """Return a curve in at most `max_width` characters, from zero to its peak.

    "!" marks a throttled card, "." an unknown value.
    """
    values, peak = curve.values, curve.peak or 1.0
    width, marks = min(max_width, len(values)), []
    for index in range(width):
        first = index * len(values) // width
        last = max(first + 1, (index + 1) * len(values) // width)
        known = [value for value in values[first:last] if value is not None]
        if any(curve.throttled[first:last]):
            marks.append("!")
        elif known:
            marks.append(_STEPS[min(7, int(8 * max(known) / peak))])
        else:
            marks.append(".")
    return "".join(marks)


def _number(block: Mapping[str, Any], key: str) -> float | None:
    return to_number(block.get(key))


def _ram(record: Mapping[str, Any]) -> str:
    return _amount_of_limit(record["peaks"].get("ram_bytes"), _ram_limit(record["limits"]))


def _shared_memory(record: Mapping[str, Any]) -> str:
    key = "shm_bytes"
    return _amount_of_limit(record["peaks"].get(key), record["limits"].get(key))


def _card_memory(card: Mapping[str, Any]) -> str:
    return _amount_of_limit(card.get("peak_bytes"), card.get("total_bytes"))


def _explain_ending(record: Mapping[str, Any]) -> list[str]:
    ended, signal = record["ended"], record["ended"].get("signal")
    kills = int(_number(ended, "memory_kills") or 0)
    ram = _ram(record)
    if kills and signal == "SIGKILL":
        advice = "use less memory (a smaller batch, fewer workers), or a machine with more memory"
        return [f"the kernel killed it because memory ran out: {ram}; {advice}"]
    if kills:
        processes = f"{kills} process{'es' if kills > 1 else ''}"
        return [f"the kernel killed {processes} because memory ran out: {ram}"]
    if signal == "SIGKILL":
        reason = (
            "it was killed with SIGKILL: by a person, by a time limit, or because memory ran "
            "out (this kernel does not report which)"
        )
        return [f"{reason} ({ram})" if ram else reason]
    if ended.get("code") is None:
        return ["its exit code is unknown: the process that started the monitor ended first"]
    return []


def _peaks(record: Mapping[str, Any]) -> list[str]:
    # A program that ended before the first sample has no figure, which is not a problem.
    unseen = (
        "unknown"
        if record["monitor"].get("looks")
        else "not measured (the program finished too quickly)"
    )
    parts = [f"RAM {_ram(record) or unseen}"]
    if _number(record["peaks"], "shm_bytes"):
        parts.append(f"shared memory {_shared_memory(record)}")
    for index, card in enumerate(_cards(record)):
        part = f"GPU {index} {_card_memory(card) or 'unknown'}"
        if (busy := _number(card, "busy_percent")) is not None:
            part += f", busy {busy:.0f}%"
        if throttled := _number(card, "throttled_s"):
            part += f", throttled {format_seconds(throttled)} s"
        parts.append(part)
    return parts


def _card_figures(name: str, card: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield name, _short_text(card.get("name"))
    yield f"{name} memory", _card_memory(card)
    yield f"{name} memory before", _amount_of_limit(card.get("before_bytes"))
    if (busy := _number(card, "busy_percent")) is not None:
        yield f"{name} busy", f"{busy:.0f}% on average"
    highest = []
    if (temperature := _number(card, "temperature_c")) is not None:
        highest.append(f"{temperature:.0f} °C")
    if (power := _number(card, "power_w")) is not None:
        highest.append(f"{power:.0f} W")
    yield f"{name} maximum", ", ".join(highest)
    throttled, reasons = _number(card, "throttled_s"), card.get("throttled_by")
    if throttled is not None:
        text = f"{format_seconds(throttled)} s"
        if throttled and isinstance(reasons, list) and reasons:
            text += f" ({', '.join(map(_short_text, reasons))})"
        yield f"{name} throttled", text


def _torch_figures(notes: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    versions = Counter(_short_text(note.get("version")) for note in notes)
    for version, count in versions.items():
        yield "torch", version if count == 1 else f"{version} in {count} processes"
    # Each of several processes sees all cards, and takes its own memory.
    peaks: dict[tuple[int, str], float] = {}
    for note in notes:
        for index, card in enumerate(rows_of(note, "cards")[:_MAX_CARDS]):
            for name in ("allocated", "reserved"):
                size = _number(card, f"{name}_bytes") or 0.0
                peaks[index, name] = max(peaks.get((index, name), 0.0), size)
    used = {key: size for key, size in peaks.items() if size}
    several = len({index for index, _ in used}) > 1
    for (index, name), size in sorted(used.items()):
        label = f"torch {name}, cuda:{index}" if several else f"torch {name}"
        yield label, _amount_of_limit(size)


def _cards(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return rows_of(record, "cards")[:_MAX_CARDS]


def _column(series: Mapping[str, Any], name: str) -> tuple[float | None, ...]:
    values = series.get(name)
    return tuple(map(to_number, values)) if isinstance(values, list) else ()


def _describe_end(ended: Mapping[str, Any]) -> str:
    if ended.get("signal"):
        return f"by {_short_text(ended.get('signal'))}"
    code = _number(ended, "code")
    return "unknown" if code is None else f"with exit code {code:.0f}"


def _ram_limit(limits: Mapping[str, Any]) -> float | None:
    known = (_number(limits, "container_bytes"), _number(limits, "ram_bytes"))
    return min(filter(None, known), default=None)


def _amount_of_limit(value: object, limit: object = None) -> str:
    amount, bound = to_number(value), to_number(limit)
    if amount is None:
        return ""
    text = format_amount(amount, "bytes")
    return f"{text} of {format_amount(bound, 'bytes')}" if bound else text


def format_value(value: float, unit: str) -> str:
    """Return a value of a curve with its unit."""
    return format_amount(value, "bytes") if unit == "bytes" else f"{value:.0f}{unit}"


def _short_text(value: object) -> str:
    return escape_line(value)[:120] if isinstance(value, str) else ""
