"""YAML text into nodes, within hard limits: no text, however hostile, gets further than a finding."""  # noqa: E501

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn

import yaml

from provision.diagnostics import Applicability, Diagnostic, Fix, RelatedLocation, Replace, Span
from provision.source.findings import make_finding
from provision.source.nodes import (
    CORE_TAGS,
    MERGE_KEY,
    Alias,
    Entry,
    Item,
    Mapping,
    Node,
    Scalar,
    ScalarValue,
    Sequence,
    resolve_alias,
    resolve_scalar,
    to_text_range,
)
from provision.source.text import TextFile
from provision.source.yaml_errors import explain_yaml_error
from provision.source.yaml_scalars import quote_scalar

# Limits of our own: a spec of 60 lines has 150 nodes, 4 levels and scalars of 80 characters.
MAX_DEPTH = 50
MAX_NODES = 20_000
MAX_SCALAR_LENGTH = 64 * 1024
MAX_KEY_LENGTH = 1024
MAX_DOCUMENTS = 10
MAX_RELATED_SHOWN = 20

_PROPERTIES = re.compile(r"(?:[&!][^\s,\[\]{}]*|!<[^>\s]*>|\s+|(?<=\s)#[^\r\n]*)+")


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """One document: its node, None where it could not be composed, and what is wrong with its text."""  # noqa: E501

    root: Node | None
    diagnostics: tuple[Diagnostic, ...]


class _StopParsing(Exception):
    """The text is not read any further."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


@dataclass(slots=True)
class _OpenCollection:
    """A collection, or the document itself, whose end has not come yet."""

    start: int
    anchor: str | None
    flow: bool
    mapping: bool
    items: list[Item] = field(default_factory=list)


def compose(text: TextFile) -> tuple[ParsedDocument, ...]:
    """Return the documents of a file, at least one; the last of them holds the finding that stopped
    the reading, if one did.
    """
    composer = _Composer(text)
    documents: list[ParsedDocument] = []
    try:
        for event in _events(text):
            if isinstance(event, yaml.DocumentEndEvent):
                documents.append(composer.finish_document())
            else:
                composer.feed(event, len(documents))
    except _StopParsing as stop:
        documents.append(ParsedDocument(None, (*composer.diagnostics, stop.diagnostic)))
    if not documents:
        documents.append(
            ParsedDocument(
                None,
                (
                    make_finding(
                        "empty-document",
                        "the file is empty",
                        text.span(0, 0),
                        hint="`provision init` writes a first spec",
                    ),
                ),
            )
        )
    return tuple(documents)


def _events(text: TextFile) -> Iterator[yaml.Event]:
    try:
        yield from yaml.parse(text.content, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise _StopParsing(explain_yaml_error(text, error)) from None


class _Composer:
    """Builds the nodes of one file from its events, document after document."""

    def __init__(self, text: TextFile) -> None:
        self.text = text
        self.total = 0
        self._begin()

    def _begin(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        self.anchors: dict[str, Node | None] = {}
        self.stack: list[_OpenCollection] = [_OpenCollection(0, None, flow=False, mapping=False)]

    def finish_document(self) -> ParsedDocument:
        """Return the document that has just ended, and be ready for the next."""
        root = resolve_alias(self.stack[0].items[0])
        if isinstance(root, Scalar) and root.resolved is None:
            document = ParsedDocument(
                None,
                (
                    *self.diagnostics,
                    make_finding("empty-document", "the document is empty", _first_line_span(root)),
                ),
            )
        elif isinstance(root, Mapping):
            document = ParsedDocument(root, tuple(self.diagnostics))
        else:
            what = "a list" if isinstance(root, Sequence) else "a single value"
            message = f"the document is {what}; a spec is a mapping of keys to values"
            shown = self.text.span(root.start, min(root.end, self.text.end_of_line(root.start)))
            document = ParsedDocument(
                None,
                (
                    *self.diagnostics,
                    make_finding(
                        "root-not-mapping", message, shown, hint="write it as in: gpu: L4"
                    ),
                ),
            )
        self._begin()
        return document

    def feed(self, event: yaml.Event, index: int) -> None:
        """Take the next event of the document `index` (0-based)."""
        match event:
            case yaml.ScalarEvent():
                self._add(self._scalar(event), event.anchor)
            case yaml.AliasEvent():
                self._add(self._alias(event), None)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._open(event)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._close(_event_range(event)[1])
            case yaml.DocumentStartEvent():
                self._document(event, index)
            case _:
                pass

    def _document(self, event: yaml.DocumentStartEvent, index: int) -> None:
        start, end = _event_range(event)
        if index >= MAX_DOCUMENTS:
            self._stop(
                "limit",
                f"more than {MAX_DOCUMENTS} documents in one file",
                start,
                end,
                "split the file",
            )
        if event.version == (1, 1):
            at = max(start, self.text.content.find("%YAML", start, end))
            why = "Since YAML 1.2, yes, no, on and off are text and 012 is no octal number."
            shown = self.text.span(at, self.text.end_of_line(at))
            self.diagnostics.append(
                make_finding(
                    "yaml-version",
                    "%YAML 1.1 is ignored: specs are YAML 1.2",
                    shown,
                    why=why,
                    hint="delete the line",
                )
            )

    def _open(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        start, _ = _event_range(event)
        if event.anchor is not None or event.tag is not None:
            start = self._content(start)
        self._count(1, event)
        if len(self.stack) > MAX_DEPTH:
            self._stop("limit", f"more than {MAX_DEPTH} levels of nesting", start, start + 1)
        if event.tag is not None and CORE_TAGS.get(event.tag) != ("map" if is_mapping else "seq"):
            self._refuse_tag(event)
        if event.anchor is not None:
            self._note_anchor(event.anchor, event)
        self.stack.append(_OpenCollection(start, event.anchor, bool(event.flow_style), is_mapping))

    def _close(self, end: int) -> None:
        done = self.stack.pop()
        # libyaml ends a block collection at the next token, after blank lines and comments.
        end = end if done.flow or not done.items else done.items[-1].end
        weight = 1 + sum(item.weight for item in done.items)
        height = 1 + max((item.height for item in done.items), default=0)
        node: Node
        if done.mapping:
            entries = tuple(self._entries(done.items))
            node = Mapping(
                self.text,
                done.start,
                end,
                entries,
                done.flow,
                done.anchor is not None,
                weight,
                height,
            )
            self._note_duplicates(entries)
        else:
            node = Sequence(
                self.text,
                done.start,
                end,
                tuple(done.items),
                done.flow,
                done.anchor is not None,
                weight,
                height,
            )
        self._add(node, done.anchor)

    def _add(self, item: Item, anchor: str | None) -> None:
        if anchor is not None and not isinstance(item, Alias):
            self.anchors[anchor] = item
        self.stack[-1].items.append(item)

    def _scalar(self, event: yaml.ScalarEvent) -> Scalar:
        (start, end), style = _event_range(event), event.style or ""
        self._count(1, event)
        if len(event.value) > MAX_SCALAR_LENGTH:
            self._stop(
                "limit",
                f"a value of {len(event.value)} characters; at most {MAX_SCALAR_LENGTH} are read",
                start,
                self.text.end_of_line(start),
            )
        if event.anchor is not None:
            self._note_anchor(event.anchor, event)
        if event.anchor is not None or event.tag is not None:
            start = min(self._content(start), end) if event.value or style else end
        if style in ("|", ">"):
            end = start + len(self.text.content[start:end].rstrip())
        value: ScalarValue = event.value
        if style == "" and event.tag is None:
            value, problem = resolve_scalar(event.value)
            if problem:
                self.diagnostics.append(
                    make_finding(
                        "number",
                        problem,
                        self.text.span(start, end),
                        hint="if it is meant as text, put it in quotes",
                    )
                )
        elif event.tag not in (None, "!", "tag:yaml.org,2002:str"):
            value = self._tagged(event)
        return Scalar(self.text, start, end, event.value, style, value, event.anchor is not None)

    def _tagged(self, event: yaml.ScalarEvent) -> ScalarValue:
        value, problem = resolve_scalar(event.value)
        kinds: dict[str, tuple[type, ...]] = {
            "int": (int,),
            "float": (int, float),
            "bool": (bool,),
            "null": (type(None),),
        }
        name = CORE_TAGS.get(event.tag or "", "")
        if name not in kinds:
            self._refuse_tag(event)
        elif (
            problem
            or not isinstance(value, kinds[name])
            or (isinstance(value, bool) and name != "bool")
        ):
            self.diagnostics.append(
                make_finding(
                    "tag",
                    f"the value is no {name}, which its tag !!{name} claims",
                    self._span(event),
                )
            )
        else:
            return float(value) if name == "float" and value is not None else value
        return str(event.value)

    def _alias(self, event: yaml.AliasEvent) -> Alias:
        name, (start, end) = str(event.anchor), _event_range(event)
        meant = self.anchors.get(name)
        if meant is None:
            problem = (
                "holds this alias itself" if name in self.anchors else "is not set above this alias"
            )
            self._stop("alias", f"the anchor &{name} {problem}", start, end)
        self._count(meant.weight, event)
        if len(self.stack) - 1 + meant.height > MAX_DEPTH:
            self._stop(
                "limit",
                f"more than {MAX_DEPTH} levels of nesting through the alias *{name}",
                start,
                end,
            )
        return Alias(self.text, start, end, name, meant, meant.weight, meant.height)

    def _entries(self, items: list[Item]) -> Iterator[Entry]:
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, Scalar):
                what = (
                    "an alias"
                    if isinstance(key, Alias)
                    else "a list"
                    if isinstance(key, Sequence)
                    else "a mapping"
                )
                shown = self.text.span(
                    key.start, min(max(key.end, key.start + 1), self.text.end_of_line(key.start))
                )
                self.diagnostics.append(
                    make_finding("key-not-text", f"{what} is used as a key; keys are text", shown)
                )
                continue
            if len(key.value) > MAX_KEY_LENGTH:
                self._stop(
                    "limit",
                    f"a key of {len(key.value)} characters; at most {MAX_KEY_LENGTH} are read",
                    key.start,
                    self.text.end_of_line(key.start),
                )
            if not isinstance(key.resolved, str):
                self._note_key(key)
            entry = Entry(key, value)
            if entry.is_merge:
                self._note_merge(value)
            yield entry

    def _note_key(self, key: Scalar) -> None:
        kind = (
            "null"
            if key.resolved is None
            else "a boolean"
            if isinstance(key.resolved, bool)
            else "a number"
        )
        fix = (
            Fix(
                "put the key in quotes",
                (Replace(_first_line_span(key), quote_scalar(key.value)),),
                Applicability.SAFE,
            )
            if key.end > key.start
            else None
        )
        message = f"the key {key.value or '(nothing)'} is {kind} in YAML; keys are text"
        self.diagnostics.append(
            make_finding(
                "key-not-text", message, _first_line_span(key), hint="put it in quotes", fix=fix
            )
        )

    def _note_merge(self, value: Item) -> None:
        node = resolve_alias(value)
        parts = node.items if isinstance(node, Sequence) else (value,)
        wrong = next((part for part in parts if not isinstance(resolve_alias(part), Mapping)), None)
        if wrong is not None:
            self.diagnostics.append(
                make_finding(
                    "merge-key",
                    f"{MERGE_KEY} merges mappings; this is none",
                    _first_line_span(wrong),
                    hint="write it as in: <<: *defaults",
                )
            )

    def _note_duplicates(self, entries: tuple[Entry, ...]) -> None:
        if len({entry.key.value for entry in entries}) == len(entries):
            return
        places: dict[tuple[str, bool], list[Scalar]] = {}
        for entry in entries:
            places.setdefault((entry.key.value, entry.is_merge), []).append(entry.key)
        for (name, merges), keys in places.items():
            if len(keys) > 1:
                related = tuple(
                    RelatedLocation(_first_line_span(key), "also here")
                    for key in keys[:-1][:MAX_RELATED_SHOWN]
                )
                message = f"the key {name} stands {len(keys)} times in one mapping"
                hint = (
                    "merge several mappings with a list: <<: [*a, *b]"
                    if merges
                    else "keep one of them"
                )
                self.diagnostics.append(
                    make_finding(
                        "duplicate-key",
                        message,
                        _first_line_span(keys[-1]),
                        why="Only one of the values can hold.",
                        hint=hint,
                        related=related,
                    )
                )

    def _note_anchor(self, name: str, event: yaml.Event) -> None:
        if name in self.anchors:
            earlier = self.anchors[name]
            related = (
                (RelatedLocation(_first_line_span(earlier), "first set here"),)
                if earlier is not None
                else ()
            )
            self.diagnostics.append(
                make_finding(
                    "duplicate-anchor",
                    f"the anchor &{name} is set again",
                    self._span(event),
                    hint="rename one of them",
                    related=related,
                )
            )
        self.anchors[name] = None

    def _refuse_tag(
        self, event: yaml.ScalarEvent | yaml.MappingStartEvent | yaml.SequenceStartEvent
    ) -> None:
        tag = str(event.tag).replace("tag:yaml.org,2002:", "!!")
        why = "A tag may ask a reader to run code; a spec is data."
        self.diagnostics.append(
            make_finding(
                "tag",
                f"the tag {tag} is not read here",
                self._span(event),
                why=why,
                hint="delete the tag",
            )
        )

    def _count(self, weight: int, event: yaml.Event) -> None:
        self.total += weight
        if self.total > MAX_NODES:
            start, _ = _event_range(event)
            self._stop(
                "limit",
                f"more than {MAX_NODES} values, aliases counted with all they stand for",
                start,
                self.text.end_of_line(start),
            )

    def _content(self, start: int) -> int:
        """Return where a node starts after its anchor and tag, and the blanks and comments between."""  # noqa: E501
        found = _PROPERTIES.match(self.text.content, start)
        return found.end() if found else start

    def _span(self, event: yaml.Event) -> Span:
        start, end = _event_range(event)
        return self.text.span(start, min(max(end, start + 1), self.text.end_of_line(start)))

    def _stop(self, name: str, message: str, start: int, end: int, hint: str = "") -> NoReturn:
        raise _StopParsing(make_finding(name, message, self.text.span(start, end), hint=hint))


def _event_range(event: yaml.Event) -> tuple[int, int]:
    """Return where an event starts and ends, in code points."""
    start, end = event.start_mark, event.end_mark
    return (start.index, end.index) if start is not None and end is not None else (0, 0)


def _first_line_span(item: Item) -> Span:
    """Return where an item stands, its first line only when it is a collection."""
    node = to_text_range(item)
    end = (
        node.end
        if isinstance(item, Scalar | Alias)
        else min(node.end, node.text.end_of_line(node.start))
    )
    return node.text.span(node.start, max(end, node.start))
