"""Parses YAML text into nodes, within limits: hostile text ends in a finding."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NoReturn

import yaml

from provision.diagnostics import Diagnostic, RelatedLocation, Span
from provision.source.findings import make_finding
from provision.source.nodes import (
    CORE_TAGS,
    Alias,
    Item,
    Mapping,
    Node,
    Scalar,
    ScalarValue,
    Sequence,
    TextFile,
    resolve_alias,
    resolve_scalar,
)
from provision.source.yaml_entries import StopParsing, first_line_span, read_entries
from provision.source.yaml_errors import explain_yaml_error

# Our own limits: a spec of 60 lines has 150 nodes, 4 levels and scalars of 80 characters.
MAX_DEPTH = 50
MAX_NODES = 20_000
MAX_SCALAR_LENGTH = 64 * 1024
MAX_DOCUMENTS = 10

_PROPERTIES = re.compile(r"(?:[&!][^\s,\[\]{}]*|!<[^>\s]*>|\s+|(?<=\s)#[^\r\n]*)+")
"""The anchor and the tag of a node, and the blanks and comments after them."""
_TAGGED_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "null": (type(None),),
}


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A document: its node, None if it could not be parsed, and the findings about its text."""

    root: Node | None
    diagnostics: tuple[Diagnostic, ...]


@dataclass(slots=True)
class _OpenCollection:
    """A collection, or the document itself, that has not ended yet."""

    start: int
    anchor: str | None
    flow: bool
    mapping: bool
    items: list[Item] = field(default_factory=list)


def compose(text: TextFile) -> tuple[ParsedDocument, ...]:
    """Return the documents of a file, at least one.

    The last document contains the finding that stopped the parser, if one did.
    """
    composer = _Composer(text)
    documents: list[ParsedDocument] = []
    stop: Diagnostic | None = None
    try:
        for event in yaml.parse(text.content, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.DocumentEndEvent):
                documents.append(composer.finish_document())
            else:
                composer.feed(event, len(documents))
    except yaml.YAMLError as error:
        stop = explain_yaml_error(text, error)
    except StopParsing as error:
        stop = error.diagnostic
    if stop is not None:
        documents.append(ParsedDocument(None, (*composer.diagnostics, stop)))
    if not documents:
        hint = "write a first spec with `provision init`"
        empty = make_finding("empty-document", "the file is empty", text.span(0, 0), hint=hint)
        documents.append(ParsedDocument(None, (empty,)))
    return tuple(documents)


class _Composer:
    """Builds the nodes of a file from its events, document after document."""

    def __init__(self, text: TextFile) -> None:
        self.text = text
        self.total = 0
        self._begin_document()

    def _begin_document(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        self.anchors: dict[str, Node | None] = {}
        self.stack: list[_OpenCollection] = [_OpenCollection(0, None, flow=False, mapping=False)]

    def finish_document(self) -> ParsedDocument:
        """Return the document that has just ended, and start the next one."""
        root = resolve_alias(self.stack[0].items[0])
        node: Node | None = None
        if isinstance(root, Mapping):
            node = root
        elif isinstance(root, Scalar) and root.resolved is None:
            self._report("empty-document", "the document is empty", first_line_span(root))
        else:
            what = "a list" if isinstance(root, Sequence) else "a single value"
            self._report(
                "root-not-mapping",
                f"the document is {what}; expected a mapping of keys to values",
                self.text.span(root.start, min(root.end, self.text.end_of_line(root.start))),
                hint="for example: gpu: L4",
            )
        document = ParsedDocument(node, tuple(self.diagnostics))
        self._begin_document()
        return document

    def feed(self, event: yaml.Event, index: int) -> None:
        """Process the next event of a document (`index` is 0-based)."""
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
                self._start_document(event, index)
            case _:
                pass

    def _start_document(self, event: yaml.DocumentStartEvent, index: int) -> None:
        start, end = _event_range(event)
        if index >= MAX_DOCUMENTS:
            message = f"more than {MAX_DOCUMENTS} documents in one file"
            self._stop("limit", message, start, end, "split the file")
        if event.version == (1, 1):
            directive = max(start, self.text.content.find("%YAML", start, end))
            self._report(
                "yaml-version",
                "`%YAML 1.1` is ignored: specs are YAML 1.2",
                self.text.span(directive, self.text.end_of_line(directive)),
                why="In YAML 1.2, yes, no, on and off are strings, and 012 is not an octal number.",
                hint="delete the line",
            )

    def _open(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        start, _ = _event_range(event)
        if event.anchor is not None or event.tag is not None:
            start = self._skip_properties(start)
        self._count(1, event)
        if len(self.stack) > MAX_DEPTH:
            self._stop("limit", f"more than {MAX_DEPTH} levels of nesting", start, start + 1)
        if event.tag is not None and CORE_TAGS.get(event.tag) != ("map" if is_mapping else "seq"):
            self._refuse_tag(event)
        if event.anchor is not None:
            self._open_anchor(event.anchor, event)
        self.stack.append(_OpenCollection(start, event.anchor, bool(event.flow_style), is_mapping))

    def _close(self, end: int) -> None:
        collection = self.stack.pop()
        items = collection.items
        # libyaml ends a block collection at the next token, after blank lines and comments.
        if not collection.flow and items:
            end = items[-1].end
        weight = 1 + sum(item.weight for item in items)
        height = 1 + max((item.height for item in items), default=0)
        node_type = Mapping if collection.mapping else Sequence
        children = read_entries(items, self.diagnostics) if collection.mapping else tuple(items)
        node = node_type(
            self.text,
            collection.start,
            end,
            children,  # type: ignore[arg-type]
            collection.flow,
            collection.anchor is not None,
            weight,
            height,
        )
        self._add(node, collection.anchor)

    def _add(self, item: Item, anchor: str | None) -> None:
        if anchor is not None and not isinstance(item, Alias):
            self.anchors[anchor] = item
        self.stack[-1].items.append(item)

    def _scalar(self, event: yaml.ScalarEvent) -> Scalar:
        (start, end), style = _event_range(event), event.style or ""
        self._count(1, event)
        if len(event.value) > MAX_SCALAR_LENGTH:
            message = (
                f"the value has {len(event.value)} characters; the limit is {MAX_SCALAR_LENGTH}"
            )
            self._stop("limit", message, start, self.text.end_of_line(start))
        if event.anchor is not None:
            self._open_anchor(event.anchor, event)
        if event.anchor is not None or event.tag is not None:
            start = min(self._skip_properties(start), end) if event.value or style else end
        if style in ("|", ">"):
            end = start + len(self.text.content[start:end].rstrip())
        value: ScalarValue = event.value
        if style == "" and event.tag is None:
            value, problem = resolve_scalar(event.value)
            if problem:
                hint = "if it is a string, put it in quotes"
                self._report("number", problem, self.text.span(start, end), hint=hint)
        elif event.tag not in (None, "!", "tag:yaml.org,2002:str"):
            value = self._tagged_value(event)
        return Scalar(self.text, start, end, event.value, style, value, event.anchor is not None)

    def _tagged_value(self, event: yaml.ScalarEvent) -> ScalarValue:
        """Return the value of a scalar with a tag, its text if the tag does not fit."""
        value, problem = resolve_scalar(event.value)
        name = CORE_TAGS.get(event.tag or "", "")
        if name not in _TAGGED_TYPES:
            self._refuse_tag(event)
            return str(event.value)
        is_of_type = isinstance(value, _TAGGED_TYPES[name])
        if problem or not is_of_type or (isinstance(value, bool) and name != "bool"):
            message = f"the value does not match its tag !!{name}"
            self._report("tag", message, self._span(event))
            return str(event.value)
        return float(value) if name == "float" and value is not None else value

    def _alias(self, event: yaml.AliasEvent) -> Alias:
        name, (start, end) = str(event.anchor), _event_range(event)
        node = self.anchors.get(name)
        if node is None:
            problem = "is not defined above this alias"
            if name in self.anchors:
                problem = "contains this alias"
            self._stop("alias", f"the anchor &{name} {problem}", start, end)
        self._count(node.weight, event)
        if len(self.stack) - 1 + node.height > MAX_DEPTH:
            message = f"more than {MAX_DEPTH} levels of nesting through the alias *{name}"
            self._stop("limit", message, start, end)
        return Alias(self.text, start, end, name, node, node.weight, node.height)

    def _open_anchor(self, name: str, event: yaml.Event) -> None:
        """Record an anchor whose node has not ended yet."""
        if name in self.anchors:
            earlier = self.anchors[name]
            related: tuple[RelatedLocation, ...] = ()
            if earlier is not None:
                related = (RelatedLocation(first_line_span(earlier), "first defined here"),)
            self._report(
                "duplicate-anchor",
                f"the anchor &{name} is defined twice",
                self._span(event),
                hint="rename one of them",
                related=related,
            )
        self.anchors[name] = None

    def _refuse_tag(
        self, event: yaml.ScalarEvent | yaml.MappingStartEvent | yaml.SequenceStartEvent
    ) -> None:
        tag = str(event.tag).replace("tag:yaml.org,2002:", "!!")
        self._report(
            "tag",
            f"the tag {tag} is not supported",
            self._span(event),
            why="Tags can make a YAML reader run code, but a spec is only data.",
            hint="delete the tag",
        )

    def _count(self, weight: int, event: yaml.Event) -> None:
        self.total += weight
        if self.total > MAX_NODES:
            start, _ = _event_range(event)
            message = f"more than {MAX_NODES} values, with aliases expanded"
            self._stop("limit", message, start, self.text.end_of_line(start))

    def _skip_properties(self, start: int) -> int:
        """Return the offset of a node after its anchor and tag."""
        properties = _PROPERTIES.match(self.text.content, start)
        return properties.end() if properties else start

    def _span(self, event: yaml.Event) -> Span:
        start, end = _event_range(event)
        return self.text.span(start, min(max(end, start + 1), self.text.end_of_line(start)))

    def _report(
        self,
        name: str,
        message: str,
        span: Span,
        *,
        why: str = "",
        hint: str = "",
        related: tuple[RelatedLocation, ...] = (),
    ) -> None:
        finding = make_finding(name, message, span, why=why, hint=hint, related=related)
        self.diagnostics.append(finding)

    def _stop(self, name: str, message: str, start: int, end: int, hint: str = "") -> NoReturn:
        raise StopParsing(make_finding(name, message, self.text.span(start, end), hint=hint))


def _event_range(event: yaml.Event) -> tuple[int, int]:
    """Return the first offset of an event and the one after its last, in code points."""
    start, end = event.start_mark, event.end_mark
    return (start.index, end.index) if start is not None and end is not None else (0, 0)
