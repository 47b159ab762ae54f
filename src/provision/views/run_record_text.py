"""What a run took, as text: the line at its end, and a summary with a small chart of each curve."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from provision.sanitize import escape_line
from provision.views.formatting import format_amount, format_seconds

_STEPS = "▁▂▃▄▅▆▇█"
_MOST_CARDS = 64


class Curve(NamedTuple):
    """One curve over time: its name, the unit of its values ("bytes", "%"), the values (None: not
    known), and the most there could be.
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
    """Return one line on how a run ended, where that was not by itself, and one with its peaks."""
    return [
        *_explain_ending(record),
        (
            f"peak {'; '.join(_peaks(record))}; "
            f"{format_seconds(number_or_none(record['ended'].get('seconds')) or 0)} s"
        ),
    ]


def render_lines(record: Mapping[str, Any], width: int) -> list[str]:
    """Return a record as lines: what ran, how it ended, its figures, and each curve drawn in a
    line.
    """
    found = list_figures(record)
    lines = [format_heading(record), *_explain_ending(record)]
    lines += [f"{row.name:<22} {row.value}" for row in found]
    room = max(10, min(60, width - 50))
    for curve in read_curves(record):
        lines.append(f"{curve.name:<22} {render_sparkline(curve, room)} {_peak_note(curve)}")
    return lines


def format_heading(record: Mapping[str, Any]) -> str:
    """Return what ran, where and when."""
    program, subject = record["program"], record["subject"]
    script = f" {_short_text(program.get('script'))}" if program.get("script") else ""
    return (
        f"{_short_text(program.get('name'))}{script} on {_short_text(subject.get('target'))} "
        f"of {_short_text(subject.get('spec'))}, {_short_text(subject.get('created_utc'))}"
    )


def list_figures(record: Mapping[str, Any]) -> list[Figure]:
    """Return the figures of a record, those that are known."""
    peaks, limits, ended = record["peaks"], record["limits"], record["ended"]
    told = [
        ("ended", _ended(ended)),
        ("seconds", format_seconds(number_or_none(ended.get("seconds")) or 0)),
        ("RAM, all processes", _amount_of_limit(peaks.get("ram_bytes"), _ram_limit(limits))),
        ("RAM, largest process", _amount_of_limit(peaks.get("process_bytes"), None)),
        (
            "RAM, container",
            _amount_of_limit(peaks.get("container_bytes"), limits.get("container_bytes")),
        ),
        ("processes at once", _count(peaks.get("processes"))),
        ("shared memory", _amount_of_limit(peaks.get("shm_bytes"), limits.get("shm_bytes"))),
    ]
    for place, card in enumerate(_cards(record)):
        told += _card_rows(place, card)
    told += _torch_rows([note for note in record["torch"] if isinstance(note, Mapping)])
    return [Figure(name, value) for name, value in told if value]


def read_curves(record: Mapping[str, Any]) -> list[Curve]:
    """Return what is drawn: RAM, shared memory where any was used, and of each card memory and
    utilisation with where it was throttled.
    """
    limits, series = record["limits"], record["series"]
    found = [
        Curve("RAM", "bytes", _column(series, "ram_bytes"), number_or_none(_ram_limit(limits)))
    ]
    if any(_column(series, "shm_bytes")):
        found.append(
            Curve(
                "shared memory",
                "bytes",
                _column(series, "shm_bytes"),
                number_or_none(limits.get("shm_bytes")),
            )
        )
    for place, card in enumerate(_cards(record)):
        slowed = tuple(bool(value) for value in _column(series, f"card{place}_throttled"))
        found.append(
            Curve(
                f"GPU {place} memory",
                "bytes",
                _column(series, f"card{place}_used_bytes"),
                number_or_none(card.get("total_bytes")),
                slowed,
            )
        )
        found.append(
            Curve(
                f"GPU {place} busy",
                "%",
                _column(series, f"card{place}_busy_percent"),
                100.0,
                slowed,
            )
        )
    return [curve for curve in found if curve.peak is not None]


def read_times(record: Mapping[str, Any]) -> tuple[float, ...]:
    """Return the seconds since the start of each value."""
    return tuple(value or 0.0 for value in _column(record["series"], "t"))


def render_sparkline(curve: Curve, room: int) -> str:
    """Return a curve in `room` characters at most, from nothing to its peak; "!" stands where a
    card was throttled, "." where nothing is known.
    """
    values = curve.values
    width = min(room, len(values))
    top = curve.peak or 1.0
    marks = []
    for place in range(width):
        first, last = (
            place * len(values) // width,
            max(place * len(values) // width + 1, (place + 1) * len(values) // width),
        )
        part = [value for value in values[first:last] if value is not None]
        slowed = any(curve.throttled[first:last])
        marks.append("!" if slowed else _STEPS[min(7, int(8 * max(part) / top))] if part else ".")
    return "".join(marks)


def number_or_none(value: object) -> float | None:
    """Return a number, None for anything else: a record may have been written by anyone."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _explain_ending(record: Mapping[str, Any]) -> list[str]:
    ended, peaks, limits = record["ended"], record["peaks"], record["limits"]
    kills, name = number_or_none(ended.get("memory_kills")) or 0, ended.get("signal")
    limit = _ram_limit(limits)
    if kills and name == "SIGKILL":
        return [
            (
                "the kernel ended it for memory: "
                f"{_amount_of_limit(peaks.get('ram_bytes'), limit)}; take less (smaller batch, "
                "fewer workers), or give it more"
            )
        ]
    if kills:
        return [
            (
                f"the kernel ended {int(kills)} process{'es' if kills > 1 else ''} for memory "
                f"while it ran: {_amount_of_limit(peaks.get('ram_bytes'), limit)}"
            )
        ]
    if name == "SIGKILL":
        seen = _amount_of_limit(peaks.get("ram_bytes"), limit)
        return [
            "it was ended by SIGKILL: by a person, a time limit, or for memory where the "
            "kernel does not tell" + (f" ({seen})" if seen else "")
        ]
    if ended.get("code") is None:
        return ["how it ended was not seen: the monitor outlived who started it"]
    return []


def _peaks(record: Mapping[str, Any]) -> list[str]:
    peaks, limits = record["peaks"], record["limits"]
    # A program that ended before the first look leaves no figure, and no reason to worry.
    unseen = "unknown" if record["monitor"].get("looks") else "not seen (it ended too soon)"
    told = [f"RAM {_amount_of_limit(peaks.get('ram_bytes'), _ram_limit(limits)) or unseen}"]
    if number_or_none(peaks.get("shm_bytes")):
        told.append(
            f"shared memory {_amount_of_limit(peaks.get('shm_bytes'), limits.get('shm_bytes'))}"
        )
    for place, card in enumerate(_cards(record)):
        busy, slowed = (
            number_or_none(card.get("busy_percent")),
            number_or_none(card.get("throttled_s")),
        )
        more = [f"busy {busy:.0f}%"] if busy is not None else []
        more += [f"throttled {format_seconds(slowed)} s"] if slowed else []
        told.append(
            ", ".join(
                [
                    (
                        f"GPU {place} "
                        f"{_amount_of_limit(card.get('peak_bytes'), card.get('total_bytes')) or 'unknown'}"  # noqa: E501
                    ),
                    *more,
                ]
            )
        )
    return told


def _card_rows(place: int, card: Mapping[str, Any]) -> list[tuple[str, str]]:
    heat, power, busy, slowed = (
        number_or_none(card.get(name))
        for name in ("temperature_c", "power_w", "busy_percent", "throttled_s")
    )
    reasons = card.get("throttled_by")
    by = (
        f" ({', '.join(map(_short_text, reasons))})"
        if slowed and isinstance(reasons, list) and reasons
        else ""
    )
    return [
        (f"GPU {place}", _short_text(card.get("name"))),
        (f"GPU {place} memory", _amount_of_limit(card.get("peak_bytes"), card.get("total_bytes"))),
        (f"GPU {place} before", _amount_of_limit(card.get("before_bytes"), None)),
        (f"GPU {place} busy", "" if busy is None else f"{busy:.0f}% on average"),
        (
            f"GPU {place} at most",
            ", ".join(
                [
                    *([f"{heat:.0f} °C"] if heat is not None else []),
                    *([f"{power:.0f} W"] if power is not None else []),
                ]
            ),
        ),
        (f"GPU {place} throttled", "" if slowed is None else f"{format_seconds(slowed)} s{by}"),
    ]


def _torch_rows(notes: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    versions = Counter(_short_text(note.get("version")) for note in notes)
    told = [
        ("torch", version if count == 1 else f"{version} in {count} processes")
        for version, count in versions.items()
    ]
    most: dict[tuple[int, str], float] = {}
    for note in notes:
        cards = note.get("cards")
        for place, card in enumerate(cards[:_MOST_CARDS] if isinstance(cards, list) else []):
            for name in ("allocated", "reserved") if isinstance(card, Mapping) else ():
                most[place, name] = max(
                    most.get((place, name), 0.0), number_or_none(card.get(f"{name}_bytes")) or 0.0
                )
    # A process of several sees all cards, and takes memory of its own.
    used = {key: taken for key, taken in most.items() if taken}
    several = len({place for place, _ in used}) > 1
    return told + [
        (f"torch {name}" + (f", cuda:{place}" if several else ""), _amount_of_limit(taken, None))
        for (place, name), taken in sorted(used.items())
    ]


def _cards(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [card for card in record["cards"][:_MOST_CARDS] if isinstance(card, Mapping)]


def _column(series: Mapping[str, Any], name: str) -> tuple[float | None, ...]:
    found = series.get(name)
    return tuple(number_or_none(value) for value in found) if isinstance(found, list) else ()


def _ended(ended: Mapping[str, Any]) -> str:
    if ended.get("signal"):
        return f"by {_short_text(ended.get('signal'))}"
    code = number_or_none(ended.get("code"))
    return "not seen" if code is None else f"with exit code {code:.0f}"


def _ram_limit(limits: Mapping[str, Any]) -> object:
    known = [
        value
        for value in (
            number_or_none(limits.get("container_bytes")),
            number_or_none(limits.get("ram_bytes")),
        )
        if value
    ]
    return min(known, default=None)


def _amount_of_limit(value: object, limit: object) -> str:
    most, bound = number_or_none(value), number_or_none(limit)
    if most is None:
        return ""
    return format_amount(most, "bytes") + (f" of {format_amount(bound, 'bytes')}" if bound else "")


def _peak_note(curve: Curve) -> str:
    top = curve.peak or 0.0
    return (
        f"to {format_amount(top, 'bytes')}"
        if curve.unit == "bytes"
        else f"to {top:.0f}{curve.unit}"
    )


def _count(value: object) -> str:
    found = number_or_none(value)
    return f"{found:.0f}" if found else ""


def _short_text(value: object) -> str:
    return escape_line(value)[:120] if isinstance(value, str) else ""
