"""What a program has printed, out of a log: without what logging has put around it, and without the
source lines that a traceback quotes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import yaml

_MAX_YAML_CHARACTERS = 2**20
"""Characters of YAML that are read as such: its parser takes seconds for more."""
_STAMP = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?(?:Z|[+-]\d\d:?\d\d))?"
_LEVEL = r"(?:DEBUG|INFO|NOTICE|WARNING|WARN|ERROR|CRITICAL|DEFAULT|stdout|stderr)"
_TAG = re.compile(r"\[(?:rank|default)(\d{1,5})\]: ?")
_LINE_PREFIX = re.compile(
    rf"{_LEVEL}?[\t ]*{_STAMP}(?:[\t ]+\S{{1,60}}(?=\t))?(?:[\t ]-[\t ]|[\t "
    rf"]+)(?:{_LEVEL}[\t ](?:-[\t ])?)?"
    r"(?:[\w.\-]{1,64} [\w./\-]{1,64}\[\d{1,8}\]: )?"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S{1,64} [\w./\-]{1,64}(?:\[\d{1,8}\])?: "
    r"|\[ *\d{1,8}\.\d{1,6}\] (?:[\w./\-]{1,64}\[\d{1,8}\]: )?"
    r"|startup-script(?:-url)?: "
    r"|[\w.\-]{1,64}-\d{1,3} +\| "
)
"""What a logging module, journald, a serial console, Cloud Logging's table, a startup script and
docker compose put before a line.
"""
_FRAME = re.compile(r"(\s*)File \"[^\"\n]{1,1000}\", line \d{1,9}")
_SHOWN_FRAME = re.compile(
    r"(?:File |Cell |Input )\S.{0,1000}(?::\d{1,9}|line \d{1,9}|\bin "
    r".{1,200})|(?:/|<ipython-input|~/)\S{0,1000} in .{1,300}"
)
_SHOWN_SOURCE = re.compile(r"(?:-{2,}> ?| +)\d{1,7}(?: .*)?$")
_BOXED_SOURCE = re.compile(r"\s*│\s+(?:❱\s*)?\d{1,7}\s.*")


def strip_log_prefixes(text: str) -> str:
    """Return what was printed: entries of structured logs as their messages, the oldest first;
    lines without stamps, hosts and ranks; each rank by itself.
    """
    messages = _entries(text)
    lines = [
        _strip_line(line)
        for line in (text if messages is None else "\n".join(messages)).splitlines()
    ]
    tagged = [(match, line) for line in lines for match in (_TAG.match(line),)]
    return "\n".join(
        line
        for there, run in groupby(tagged, lambda pair: pair[0] is not None)
        for line in (_by_rank(run) if there else (one for _, one in run))
    )


def blank_quoted_source(text: str) -> str:
    """Return a text with the source lines of its tracebacks empty: what stands there was not
    printed by an error, though it may quote one.

    Tracebacks of Python, of IPython (lines with numbers around each frame) and of rich (in
    boxes) are known.
    """
    kept: list[str] = []
    deep, shown = -1, False
    for line in text.splitlines():
        frame = _FRAME.match(line)
        deep = len(frame[1]) if frame else deep if deep >= 0 and _depth(line) > deep else -1
        shown = bool(_SHOWN_FRAME.match(line)) or (shown and bool(_SHOWN_SOURCE.match(line)))
        source = (
            (deep >= 0 and not frame)
            or (shown and _SHOWN_SOURCE.match(line))
            or _BOXED_SOURCE.fullmatch(line)
        )
        kept.append("" if source else line)
    return "\n".join(kept)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _by_rank(run: Iterable[tuple[re.Match[str] | None, str]]) -> Iterator[str]:
    """Yield the lines of several processes, each process by itself: they print at once, and a
    traceback of one is cut by those of the others.
    """
    found = [(match, line) for match, line in run if match is not None]
    found.sort(key=lambda pair: int(pair[0][1]))
    yield from (line[match.end() :] for match, line in found)


def _strip_line(line: str) -> str:
    """Return a line without what stands around it, and the message of a line that is a JSON object."""  # noqa: E501
    for _ in range(3):
        around = _LINE_PREFIX.match(line)
        if around is None or not around.end():
            break
        line = line[around.end() :]
    if line.startswith("{") and line.rstrip().endswith("}"):
        try:
            return next(_messages([json.loads(line)]), line)
        except (ValueError, RecursionError):
            return line
    return line


def _entries(text: str) -> list[str] | None:
    """Return the messages of a log as Cloud Logging gives it (JSON or YAML), or None where the text
    is no such log.
    """
    found: Sequence[Any] = ()
    try:
        if text.lstrip().startswith("["):
            found = json.loads(text)
        elif (
            re.match(r"\s*(?:---\s*)?(?:insertId|jsonPayload|textPayload|logName):", text)
            and len(text) <= _MAX_YAML_CHARACTERS
        ):
            found = [
                entry for entry in yaml.load_all(text, Loader=yaml.CBaseLoader) if entry is not None
            ]
    except (ValueError, RecursionError, yaml.YAMLError):
        return None
    return list(_messages(_oldest_first(found))) or None


def _oldest_first(entries: Sequence[Any]) -> Sequence[Any]:
    """Return the entries in the order of their stamps: `gcloud logging read` gives the newest
    first.
    """
    stamps = [str(entry.get("timestamp") or "") for entry in entries if isinstance(entry, dict)]
    if not stamps or len(stamps) != len(entries) or not all(stamps):
        return entries
    newest_first = stamps[0] > stamps[-1]
    return sorted(
        reversed(entries) if newest_first else entries, key=lambda entry: str(entry["timestamp"])
    )


def _messages(entries: Iterable[Any]) -> Iterator[str]:
    for entry in entries:
        payload = entry.get("jsonPayload", entry) if isinstance(entry, dict) else {}
        words = [entry.get("textPayload")] if isinstance(entry, dict) else []
        words += (
            [payload.get(key) for key in ("message", "MESSAGE", "msg", "log", "stack_trace")]
            if isinstance(payload, dict)
            else []
        )
        said = [word for word in words if isinstance(word, str) and word]
        if said:
            yield "\n".join(dict.fromkeys(said))
