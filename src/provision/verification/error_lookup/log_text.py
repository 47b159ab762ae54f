"""Extracts a program's output from a log, without log prefixes and quoted source lines."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import yaml

from provision.verification.error_lookup.called_names import describe_source

_MAX_YAML_CHARACTERS = 2**20
"""Characters of YAML that are parsed: its parser takes seconds for more."""
_STAMP = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?(?:Z|[+-]\d\d:?\d\d))?"
_LEVEL = r"(?:DEBUG|INFO|NOTICE|WARNING|WARN|ERROR|CRITICAL|DEFAULT|stdout|stderr)"
_TAG = re.compile(r"\[(?:rank|default)(\d{1,5})\]: ?")
_LINE_PREFIX = re.compile(
    rf"{_LEVEL}?[\t ]*{_STAMP}(?:[\t ]+\S{{1,60}}(?=\t))?(?:[\t ]-[\t ]|[\t ]+(?={_LEVEL}\b)|[\t "
    rf"])(?:{_LEVEL}[\t ](?:-[\t ])?)?"
    r"(?:[\w.\-]{1,64} [\w./\-]{1,64}\[\d{1,8}\]: )?"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S{1,64} [\w./\-]{1,64}(?:\[\d{1,8}\])?: "
    r"|\[ *\d{1,8}\.\d{1,6}\] (?:[\w./\-]{1,64}\[\d{1,8}\]: )?"
    r"|startup-script(?:-url)?: "
    r"|[\w.\-]{1,64}-\d{1,3} +\| "
    r"|\([\w.:\-]{1,64} (?:rank=\d{1,5} )?pid=\d{1,8}(?:, ip=[\d.:a-f]{1,40})?\) "
    rf"|{_LEVEL} \d\d-\d\d \d\d:\d\d:\d\d \[[^\]\n]{{1,80}}:\d{{1,5}}\] "
    r"|\[\d{1,3},\d{1,5}\]<std(?:out|err)>: ?"
    r"|(?:worker|node|host|ip)-?\d[\w.\-]{0,60}: "
    r"|\d{1,4}: (?=\S| {2})"
    r"|\d{1,6}\.\ds\t\d{1,7}\t"
    r"|Step #\d{1,4}(?: - \"[^\"\n]{1,80}\")?: "
    r"|#\d{1,4} \d{1,6}\.\d{1,4} "
    r"|\[pod/[\w./\-]{1,160}\] "
)
"""Prefixes of a line by logging, journald, a serial console, Cloud Logging's table, a startup
script, docker compose, Ray and vllm, mpirun, DeepSpeed's launcher, srun, Kaggle, Cloud Build,
docker build and kubectl.
"""
_QUOTED_REPLY = re.compile(r"^> ?", re.MULTILINE)
_QUOTED_TRACEBACK = re.compile(r"^> ?Traceback \(most recent call last\)", re.MULTILINE)
_HTML_TAG = re.compile(
    r"</?(?:a|b|br|code|div|font|i|li|p|pre|span|table|td|th|tr|ul)(?:\s[^<>\n]{0,400})?/?>"
)
_HTML_END = re.compile(r"</(?:code|div|font|pre|span)>|&#39;|&#x27;|&quot;")
_TYPOGRAPHIC_QUOTES = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")
_LINKED_PLACE = re.compile(
    r"\[((?:[A-Za-z]:\\|/|~|<ipython-input)[^\]\n]{1,400}|\d{1,6})\]\((?:https?|file)://[^)\n]{1,600}\)"
    r"|<a href='file:[^'\n]{1,600}'>(\d{1,6})</a>"
)
"""A path or a line number of a traceback, which Colab and VS Code make a link."""
_WRAPPED = re.compile(r"(?<=[^\n]{40})\n(?=[a-z(])")
_MAX_WRAPPED_CHARACTERS = 20_000
_MESSAGE_KEYS = ("message", "MESSAGE", "msg", "log", "stack_trace")
_FRAME = re.compile(r"(\s*)File \"[^\"\n]{1,1000}\", line \d{1,9}")
_SHOWN_FRAME = re.compile(
    r"(?:File |Cell |Input )\S.{0,1000}(?::\d{1,9}|line \d{1,9}|\bin "
    r".{1,200})|(?:/|<ipython-input|~/)\S{0,1000} in .{1,300}"
)
_WINDOWS_PATH = re.compile(r"\b[A-Za-z]:\\")
_SHOWN_SOURCE = re.compile(r"(?:-{0,5}> ?| +)\d{1,7}(?: .*)?$")
_BOXED_SOURCE = re.compile(r"\s*│\s+(?:❱\s*)?\d{1,7}\s.*")
_MARKED_SOURCE = re.compile(r"(?:-{2,}>|\s*│\s+❱)\s*\d{1,7}\s")
_UNDERLINE = re.compile(r"[\s^~]*")


def strip_markup(text: str) -> str:
    """Return a text without the marks of a web page, a quoted reply or a word processor."""
    if _HTML_END.search(text):
        text = html.unescape(_HTML_TAG.sub("", text))
    if _QUOTED_TRACEBACK.search(text):
        text = _QUOTED_REPLY.sub("", text)
    text = _LINKED_PLACE.sub(lambda match: match[1] or match[2], text)
    return text.translate(_TYPOGRAPHIC_QUOTES)


def strip_log_prefixes(text: str) -> str:
    """Return what a log's program printed.

    Entries of structured logs become their messages, the oldest first; lines lose stamps, hosts
    and ranks; consecutive lines of several ranks are sorted by rank.
    """
    messages = _log_messages(text)
    if messages is not None:
        text = "\n".join(messages)
    lines: list[str] = []
    ranked: list[tuple[int, str]] = []
    for line in map(_expand_line_ends, map(_strip_line, text.splitlines())):
        if tag := _TAG.match(line):
            ranked.append((int(tag[1]), line[tag.end() :]))
            continue
        lines += _by_rank(ranked)
        ranked.clear()
        lines.append(line)
    return "\n".join([*lines, *_by_rank(ranked)])


def join_wrapped_lines(text: str, separator: str) -> str:
    """Return the end of a text, with lines joined that a terminal or a mail program has wrapped."""
    return _WRAPPED.sub(separator, text[-_MAX_WRAPPED_CHARACTERS:])


def blank_quoted_source(text: str) -> str:
    """Return a text in which the source lines of tracebacks are empty.

    No error printed them, though they may quote one. Tracebacks of Python, of IPython (lines
    with numbers around each frame) and of rich (in boxes) are known. After an error about the
    arguments of a call, a line names the call that the last source line contains; after an error
    that is too short without it, a line repeats the source line.
    """
    lines: list[str] = []
    frame_depth, in_shown_frame, source = -1, False, ""
    for line in text.splitlines():
        frame = _FRAME.match(line)
        if frame:
            frame_depth = len(frame[1])
        elif len(line) - len(line.lstrip()) <= frame_depth:
            frame_depth = -1
        numbered = _SHOWN_SOURCE.match(line) is not None
        in_shown_frame = _SHOWN_FRAME.match(line) is not None or (in_shown_frame and numbered)
        in_frame = frame_depth >= 0 and not frame
        boxed = _BOXED_SOURCE.fullmatch(line) is not None
        quoted = in_frame or boxed or (in_shown_frame and numbered)
        if (in_frame and not _UNDERLINE.fullmatch(line)) or _MARKED_SOURCE.match(line):
            source = line
        lines.append("" if quoted else line)
        if not quoted and (described := describe_source(line, source)):
            lines.append(described)
            source = ""
    return "\n".join(lines)


def _by_rank(lines: Iterable[tuple[int, str]]) -> list[str]:
    """Return the lines of processes that print at once, one process after another.

    A traceback of one is interrupted by those of the others.
    """
    return [line for _, line in sorted(lines, key=lambda pair: pair[0])]


def _strip_line(line: str) -> str:
    """Return a line without its prefixes, or the message of a line that is a JSON object."""
    for _ in range(3):
        prefix = _LINE_PREFIX.match(line)
        if prefix is None or not prefix.end():
            break
        line = line[prefix.end() :]
    if line.startswith("{") and line.rstrip().endswith("}"):
        try:
            return next(_messages([json.loads(line)]), line)
        except (ValueError, RecursionError):
            return line
    return line


def _expand_line_ends(line: str) -> str:
    """Return a line with the line ends that `repr` or JSON escaped; Windows paths are kept."""
    if line.count("\\n") < 2 or _WINDOWS_PATH.search(line):
        return line
    return line.replace("\\n", "\n")


def _log_messages(text: str) -> list[str] | None:
    """Return the messages of a Cloud Logging export (JSON or YAML), or None for other text."""
    entries: Sequence[Any] = ()
    is_yaml = re.match(r"\s*(?:---\s*)?(?:insertId|jsonPayload|textPayload|logName):", text)
    try:
        if text.lstrip().startswith("["):
            entries = json.loads(text)
        elif is_yaml and len(text) <= _MAX_YAML_CHARACTERS:
            documents = yaml.load_all(text, Loader=yaml.CBaseLoader)
            entries = [entry for entry in documents if entry is not None]
    except (ValueError, RecursionError, yaml.YAMLError):
        return None
    return list(_messages(_oldest_first(entries))) or None


def _oldest_first(entries: Sequence[Any]) -> Sequence[Any]:
    """Return the entries by their stamps: `gcloud logging read` prints the newest first."""
    stamps = [str(entry.get("timestamp") or "") for entry in entries if isinstance(entry, dict)]
    if not stamps or len(stamps) != len(entries) or not all(stamps):
        return entries
    newest_first = stamps[0] > stamps[-1]
    return sorted(
        reversed(entries) if newest_first else entries, key=lambda entry: str(entry["timestamp"])
    )


def _messages(entries: Iterable[Any]) -> Iterator[str]:
    for entry in entries:
        if not isinstance(entry, dict):
            continue
        parts, payload = [entry.get("textPayload")], entry.get("jsonPayload", entry)
        if isinstance(payload, dict):
            parts += [payload.get(key) for key in _MESSAGE_KEYS]
        texts = [part for part in parts if isinstance(part, str) and part]
        if texts:
            yield "\n".join(dict.fromkeys(texts))
