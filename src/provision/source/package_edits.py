"""Edits of the `packages` of a spec's text: one entry at a time, everything else stays."""

from __future__ import annotations

import re
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from provision.source.nodes import (
    Alias,
    Item,
    Mapping,
    Scalar,
    Sequence,
    TextFile,
    build_value_tree,
    to_text_file,
)
from provision.source.yaml_parser import compose
from provision.source.yaml_scalars import format_scalar, quote_scalar

_WRITTEN = re.compile(r"\s*([A-Za-z0-9._-]+)\s*(?:\[([^\]]*)\])?\s*([^;]*?)\s*(?:;\s*(.*?)\s*)?")
_LEAD = re.compile(r"[ -]*")
_PLAIN = re.compile(r"[A-Za-z][^\s:#]*")
"""Requirements that need no quotes in a block list."""


class UneditablePackages(Exception):
    """The packages of this text cannot be edited entry by entry; `offset` is the reason's place."""

    def __init__(self, why: str, offset: int) -> None:
        super().__init__(why)
        self.why, self.offset = why, offset


class WrittenRequirement(NamedTuple):
    """A requirement in parts, each as a person wrote it: specifiers keep their order."""

    name: str
    extras: tuple[str, ...]
    version: str
    marker: str

    @property
    def key(self) -> str:
        """The canonical name."""
        return str(canonicalize_name(self.name))

    def format(self) -> str:
        """Return it as one requirement."""
        extras = f"[{','.join(self.extras)}]" if self.extras else ""
        marker = f"; {self.marker}" if self.marker else ""
        return f"{self.name}{extras}{self.version}{marker}"

    def merge(self, change: WrittenRequirement) -> WrittenRequirement:
        """Return it with the version and the marker of `change`, if any, and all extras."""
        known = {str(canonicalize_name(extra)) for extra in self.extras}
        more = (extra for extra in change.extras if str(canonicalize_name(extra)) not in known)
        return WrittenRequirement(
            self.name,
            (*self.extras, *more),
            change.version or self.version,
            change.marker or self.marker,
        )


def parse_requirement(text: str) -> WrittenRequirement:
    """Return a requirement in parts.

    Raises:
        InvalidRequirement: it is not a requirement of a package from an index.
    """
    match = _WRITTEN.fullmatch(text)
    if Requirement(text).url or match is None:
        raise InvalidRequirement(text)
    name, extras, version, marker = match.groups()
    listed = tuple(extra.strip() for extra in (extras or "").split(",") if extra.strip())
    version = re.sub(r"\s+", "", version).removeprefix("(").removesuffix(")")
    return WrittenRequirement(name, listed, version, marker or "")


def put_package(text: TextFile, requirement: WrittenRequirement) -> str:
    """Return the content with a package added, or changed if it is listed.

    A new package keeps the order of a sorted list; else it becomes the last one.

    Raises:
        UneditablePackages: the list is behind an anchor, or the text has none.
    """
    packages, content = _own_packages(text), text.content
    if packages is None:
        root = _own_map(text)
        if root.flow:
            comma = ", " if root.entries else ""
            end = root.end - 1
            added = f"{comma}packages: [{quote_scalar(requirement.format())}]"
            return content[:end] + added + content[end:]
        end = text.end_of_line(root.end)
        added = f"packages:{text.line_break()}  - {_format(requirement.format(), ())}"
        return content[:end].rstrip() + text.line_break() + added + content[end:]
    for item in packages.items:
        if _key_of(item) == requirement.key:
            return _change_item(text, item, requirement, packages)
    return _add_item(text, packages, requirement)


def drop_package(text: TextFile, key: str) -> str | None:
    """Return the content without a package; None if this text does not list it.

    Raises:
        UneditablePackages: the list or the entry is behind an anchor.
    """
    packages = _own_packages(text)
    items = () if packages is None else packages.items
    index = next((index for index, item in enumerate(items) if _key_of(item) == key), None)
    if packages is None or index is None:
        return None
    item, content = items[index], text.content
    if packages.flow:
        if len(items) == 1:
            return content[: packages.start] + "[]" + content[packages.end :]
        if index:
            return content[: items[index - 1].end] + content[item.end :]
        return content[: item.start] + content[items[1].start :]
    start, end = text.start_of_line(item.start), text.end_of_line(item.end)
    if len(items) == 1:
        key_end = content.rindex(":", 0, packages.start) + 1
        return f"{content[:key_end]} []{content[key_end:start].rstrip()}{content[end:]}"
    line_break = re.compile(r"\r\n|\n|\r").match(content, end)
    if line_break is None:  # the last line of a file without a line break at its end
        return content[:start].rstrip("\r\n")
    return content[:start] + content[line_break.end() :]


def listed_packages(text: TextFile) -> tuple[str, ...]:
    """Return the canonical names that this text lists itself."""
    packages = _own_packages(text)
    return tuple(filter(None, map(_key_of, packages.items))) if packages is not None else ()


def _own_map(text: TextFile) -> Mapping:
    document = compose(text)[0]
    if not isinstance(document.root, Mapping):
        raise UneditablePackages("the text is not a map", 0)
    return document.root


def _own_packages(text: TextFile) -> Sequence | None:
    """Return the list under `packages`; None without one."""
    value = build_value_tree(_own_map(text)).find(("packages",))
    if value is None:
        return None
    if value.shared:
        raise UneditablePackages("`packages` comes from an anchor, alias or merge key", value.at[1])
    if not isinstance(value.node, Sequence):
        raise UneditablePackages("`packages` is not a list", value.at[1])
    return value.node


def _key_of(item: Item) -> str:
    """Return the canonical name of an entry; "" if it has none."""
    node = item.anchored_node if isinstance(item, Alias) else item
    written = ""
    if isinstance(node, Scalar):
        match = _WRITTEN.fullmatch(node.value)
        written = match[1] if match else ""
    elif isinstance(node, Mapping):
        for entry in node.entries:
            if entry.key.value == "name" and isinstance(entry.value, Scalar):
                written = entry.value.value
    return str(canonicalize_name(written))


def _change_item(text: TextFile, item: Item, change: WrittenRequirement, packages: Sequence) -> str:
    if isinstance(item, Alias) or item.anchored:
        raise UneditablePackages(f"the entry of {change.name} is shared by an anchor", item.start)
    if isinstance(item, Mapping):
        return _change_mapping(text, item, change)
    if not isinstance(item, Scalar):
        raise UneditablePackages(f"the entry of {change.name} is a list", item.start)
    merged = parse_requirement(item.value).merge(change)
    if merged == parse_requirement(item.value):
        return text.content
    new = _format(merged.format(), (item,), flow=packages.flow)
    return text.content[: item.start] + new + text.content[item.end :]


def _change_mapping(text: TextFile, node: Mapping, change: WrittenRequirement) -> str:
    """Return the content with the fields of a mapping changed, the last one first."""
    values = {entry.key.value: entry.value for entry in node.entries}
    fields: dict[str, str] = {}
    if change.version:
        fields["version"] = quote_scalar(change.version)
    if change.marker:
        fields["marker"] = quote_scalar(change.marker)
    if change.extras:
        old = values.get("extras")
        before = (
            [child.value for child in old.items if isinstance(child, Scalar)]
            if isinstance(old, Sequence)
            else []
        )
        merged = WrittenRequirement(change.name, tuple(before), "", "").merge(change).extras
        if list(merged) != before:
            fields["extras"] = f"[{', '.join(map(format_scalar, merged))}]"
    content = text.content
    last = node.entries[-1].value
    added = [f"{name}: {value}" for name, value in fields.items() if name not in values]
    changes = [
        (values[name].start, values[name].end, value)
        for name, value in fields.items()
        if name in values
    ]
    if added and node.flow:
        changes.append((last.end, last.end, "".join(f", {field}" for field in added)))
    elif added:
        column = node.start - text.start_of_line(node.start)
        lines = "".join(f"{text.line_break()}{' ' * column}{field}" for field in added)
        end = text.end_of_line(last.end)
        changes.append((end, end, lines))
    for start, end, value in sorted(changes, reverse=True):
        if not _same_scalar(content[start:end], value):
            content = content[:start] + value + content[end:]
    return content


def _same_scalar(old: str, new: str) -> bool:
    return old.strip("'\"") == new.strip("'\"")


def _add_item(text: TextFile, packages: Sequence, requirement: WrittenRequirement) -> str:
    items, content = packages.items, text.content
    new = _format(requirement.format(), items, flow=packages.flow)
    keys = [_key_of(item) for item in items]
    place = len(items)
    if len(keys) > 1 and keys == sorted(keys):
        place = sum(key < requirement.key for key in keys)
    if packages.flow:
        if not items:
            return content[: packages.start + 1] + new + content[packages.start + 1 :]
        if place == 0:
            return content[: items[0].start] + f"{new}, " + content[items[0].start :]
        end = items[place - 1].end
        return content[:end] + f", {new}" + content[end:]
    lead = content[text.start_of_line(packages.start) : packages.start]
    if not _LEAD.fullmatch(lead):
        raise UneditablePackages("the first entry of `packages` is not on its own line", 0)
    line = f"{lead}- {new}"
    if place == 0:
        start = text.start_of_line(items[0].start)
        return content[:start] + line + text.line_break() + content[start:]
    end = text.end_of_line(items[place - 1].end)
    return content[:end] + text.line_break() + line + content[end:]


def _format(requirement: str, siblings: tuple[Item, ...], *, flow: bool = False) -> str:
    """Return a requirement as YAML, quoted as its neighbours are if it needs no quotes."""
    styles = {item.style for item in siblings if isinstance(item, Scalar)}
    if styles == {"'"} and "'" not in requirement:
        return f"'{requirement}'"
    is_plain = _PLAIN.fullmatch(requirement) and not (flow and re.search(r"[,\[\]]", requirement))
    return requirement if is_plain and styles != {'"'} else quote_scalar(requirement)


def edit_packages(
    name: str, content: str, added: tuple[WrittenRequirement, ...], removed: tuple[str, ...]
) -> str:
    """Return the content of a text after all additions and removals."""
    for requirement in added:
        content = put_package(to_text_file(name, content), requirement)
    for key in removed:
        content = drop_package(to_text_file(name, content), key) or content
    return content
