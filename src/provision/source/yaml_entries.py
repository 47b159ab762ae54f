"""Reads the entries of a YAML mapping and checks its keys."""

from __future__ import annotations

from collections.abc import Iterator

from provision.diagnostics import Applicability, Diagnostic, Fix, RelatedLocation, Replace, Span
from provision.source.findings import make_finding
from provision.source.nodes import (
    MERGE_KEY,
    Alias,
    Entry,
    Item,
    Mapping,
    Scalar,
    Sequence,
    resolve_alias,
    to_text_range,
)
from provision.source.yaml_scalars import quote_scalar

MAX_KEY_LENGTH = 1024
MAX_RELATED_SHOWN = 20


class StopParsing(Exception):
    """The rest of the text was not read."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


def read_entries(items: list[Item], diagnostics: list[Diagnostic]) -> tuple[Entry, ...]:
    """Return the entries of a mapping from its keys and values in turn, and add its findings.

    Raises:
        StopParsing: a key is too long.
    """
    entries = []
    for key, value in zip(items[::2], items[1::2], strict=True):
        if not isinstance(key, Scalar):
            diagnostics.append(_key_not_scalar(key))
            continue
        if len(key.value) > MAX_KEY_LENGTH:
            message = f"the key has {len(key.value)} characters; the limit is {MAX_KEY_LENGTH}"
            span = key.text.span(key.start, key.text.end_of_line(key.start))
            raise StopParsing(make_finding("limit", message, span))
        if not isinstance(key.resolved, str):
            diagnostics.append(_key_not_text(key))
        entry = Entry(key, value)
        if entry.is_merge:
            diagnostics.extend(_check_merge(value))
        entries.append(entry)
    diagnostics.extend(_find_duplicates(entries))
    return tuple(entries)


def first_line_span(item: Item) -> Span:
    """Return the span of an item, only the first line of a collection."""
    start, end = to_text_range(item)[1:]
    if not isinstance(item, Scalar | Alias):
        end = min(end, item.text.end_of_line(start))
    return item.text.span(start, max(end, start))


def _key_not_scalar(key: Item) -> Diagnostic:
    kinds: dict[type, str] = {Alias: "an alias", Sequence: "a list", Mapping: "a mapping"}
    end = min(max(key.end, key.start + 1), key.text.end_of_line(key.start))
    message = f"{kinds[type(key)]} is used as a key; keys must be strings"
    return make_finding("key-not-text", message, key.text.span(key.start, end))


def _key_not_text(key: Scalar) -> Diagnostic:
    kind = "a number"
    if key.resolved is None:
        kind = "null"
    elif isinstance(key.resolved, bool):
        kind = "a boolean"
    span = first_line_span(key)
    fix = None
    if key.end > key.start:
        edit = Replace(span, quote_scalar(key.value))
        fix = Fix("put the key in quotes", (edit,), Applicability.SAFE)
    message = f"the key {key.value or '(empty)'} is {kind}; keys must be strings"
    return make_finding("key-not-text", message, span, hint="put it in quotes", fix=fix)


def _check_merge(value: Item) -> Iterator[Diagnostic]:
    """Yield a finding if a merge key has a value that is neither a mapping nor a list of them."""
    node = resolve_alias(value)
    for part in node.items if isinstance(node, Sequence) else (value,):
        if not isinstance(resolve_alias(part), Mapping):
            yield make_finding(
                "merge-key",
                f"the value of {MERGE_KEY} must be a mapping or a list of mappings",
                first_line_span(part),
                hint="for example: <<: *defaults",
            )
            return


def _find_duplicates(entries: list[Entry]) -> Iterator[Diagnostic]:
    """Yield a finding for each key that is repeated; a quoted << is not the merge key."""
    if len({entry.key.value for entry in entries}) == len(entries):
        return
    keys_by_name: dict[tuple[str, bool], list[Scalar]] = {}
    for entry in entries:
        keys_by_name.setdefault((entry.key.value, entry.is_merge), []).append(entry.key)
    for (name, is_merge), keys in keys_by_name.items():
        if len(keys) == 1:
            continue
        hint = "keep only one of them"
        if is_merge:
            hint = "merge several mappings with a list: <<: [*a, *b]"
        yield make_finding(
            "duplicate-key",
            f"the key {name} appears {len(keys)} times in one mapping",
            first_line_span(keys[-1]),
            why="Only one of the values can apply.",
            hint=hint,
            related=tuple(
                RelatedLocation(first_line_span(key), "also here")
                for key in keys[:-1][:MAX_RELATED_SHOWN]
            ),
        )
