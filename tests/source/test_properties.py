"""What holds for any text at all."""

import tempfile
from pathlib import Path

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from provision import source
from provision.diagnostics import Fix, Replace, RouteLocation, RoutePart
from provision.errors import ExternalError
from provision.sanitize import escape_line
from provision.source.nodes import (
    Mapping,
    Scalar,
    Sequence,
    decode_file,
    resolve_alias,
    resolve_scalar,
    to_text_file,
)
from provision.source.yaml_parser import compose
from provision.source.yaml_scalars import format_scalar, quote_scalar

SETTINGS = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
# Pieces that YAML gives a meaning, so that random text gets somewhere.
PIECES = [
    "a",
    "b: ",
    "c:",
    "\n",
    "\n  ",
    "\n- ",
    "- ",
    "[",
    "]",
    "{",
    "}",
    ", ",
    ": ",
    "? ",
    "&x ",
    "*x",
    "!!str ",
    "!t ",
    "'",
    '"',
    "|\n",
    ">-\n  ",
    "# c",
    "<<: ",
    "---\n",
    "...\n",
    "%YAML 1.1\n",
    "1",
    "3.10",
    "true",
    "~",
    "1e999",
    "\t",
    "\r\n",
    "\r",
    "\ufeff",
    "\u2028",
    "\x85",
    "é",
    "🤗",
    "\x00",
    "\x1b",
    "\\",
    "\\ud800",
    "gpu: L4\n",
    "python: 3.10\n",
    "packages: [torch]\n",
    "extends: spec.yaml\n",
    "env: {A: 1}\n",
    "targets: {local: {kind: local}}\n",
    "secrets: {A: b}\n",
]
TEXTS = st.one_of(st.lists(st.sampled_from(PIECES), max_size=30).map("".join), st.text(max_size=80))
SCALARS = st.text(st.characters(codec="utf-8"), max_size=30)


class Memory:
    """Holds one file, whatever its name."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw

    def read(self, path: Path, limit: int) -> bytes:
        if path.name != "spec.yaml":
            raise ExternalError(f"{path} is missing")
        return self.raw

    def exists(self, path: Path) -> bool:
        return False


def linted(raw: bytes):
    for document in source.read_spec_file(Path(tempfile.gettempdir()) / "spec.yaml", Memory(raw)):
        spec, more = source.validate_source(document)
        yield document, spec, (*document.diagnostics, *more)


@SETTINGS
@given(st.one_of(TEXTS.map(str.encode), st.binary(max_size=80)))
def test_any_bytes_end_in_findings_with_places_inside_the_text(raw):
    for document, spec, findings in linted(raw):
        assert (document.data is None) == (document.tree is None)
        assert spec is not None or findings
        for finding in findings:
            for where in (finding.where, *(other.where for other in finding.related)):
                span = document.span(where)
                assert 0 <= span.start.offset <= span.end.offset <= len(document.files[span.file])
            words = finding.message + finding.why + finding.help
            assert escape_line(words) == words
        new = document.apply_fixes([finding.fix for finding in findings if finding.fix])
        assert all(text != raw.decode() for text in new.values())


@SETTINGS
@given(TEXTS)
def test_the_characters_of_every_scalar_read_back_as_its_value(content):
    text, problems = decode_file("t", content.encode())
    for document in compose(text) if not problems else ():
        for scalar in scalars(document.root):
            shown = text.content[scalar.start : scalar.end]
            if scalar.style in ("", "'", '"') and "\n" not in shown and "\r" not in shown:
                (again,) = [
                    event
                    for event in yaml.parse(
                        f"- {shown}\n" if shown else "''", Loader=yaml.CSafeLoader
                    )
                    if isinstance(event, yaml.ScalarEvent)
                ]
                assert again.value == scalar.value
                assert (again.style or "") == scalar.style or not shown


@SETTINGS
@given(
    st.dictionaries(
        SCALARS,
        st.recursive(
            SCALARS,
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SCALARS, inner, max_size=3),
            max_leaves=8,
        ),
        min_size=1,
        max_size=4,
    )
)
def test_data_survives_being_written_and_read(data):
    def dump(value):
        if isinstance(value, dict):
            return (
                "{"
                + ", ".join(f"{quote_scalar(key)}: {dump(inner)}" for key, inner in value.items())
                + "}"
            )
        return (
            "[" + ", ".join(map(dump, value)) + "]"
            if isinstance(value, list)
            else format_scalar(value)
        )

    ((document, _, _),) = linted(dump(data).encode())
    assert document.data == data


@SETTINGS
@given(SCALARS)
def test_written_text_reads_back_as_itself(value):
    for form in (quote_scalar(value), format_scalar(value)):
        (document,) = compose(to_text_file("t", f"a: {form}\n"))
        assert document.diagnostics == ()
        assert resolve_alias(document.root.entries[0].value).resolved == value


@SETTINGS
@given(st.text("0123456789.eE+-xo_naifINF:~true", max_size=30))
def test_resolving_never_fails_and_numbers_are_those_of_the_text(text):
    value, problem = resolve_scalar(text)
    assert isinstance(value, str | int | float | bool | None)
    if isinstance(value, float):
        assert value == float(text)
    assert isinstance(value, str) or not problem


@SETTINGS
@given(
    st.lists(
        st.tuples(st.sampled_from("abcdef"), SCALARS),
        min_size=1,
        max_size=6,
        unique_by=lambda pair: pair[0],
    ),
    SCALARS,
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.booleans(),
)
def test_a_replacement_leaves_every_other_character(pairs, new, ending, bom):
    lines = [f"{key}: {quote_scalar(value)}  # é🤗{ending}" for key, value in pairs]
    raw = ("\ufeff" if bom else "") + "# head" + ending + "".join(lines)
    ((document, _, _),) = linted(raw.encode())
    key, old = pairs[len(pairs) // 2]
    edited = document.apply_fixes([Fix("t", (Replace(RouteLocation((key,)), quote_scalar(new)),))])
    assert edited.get(document.name, raw) == raw.replace(
        f"{key}: {quote_scalar(old)}  #", f"{key}: {quote_scalar(new)}  #"
    )
    span = document.span(RouteLocation((key,), RoutePart.KEY))
    assert document.files[document.name][span.start.offset : span.end.offset] == key


def scalars(node):
    if isinstance(node, Scalar):
        yield node
    elif isinstance(node, Sequence):
        for item in node.items:
            yield from scalars(resolve_alias(item))
    elif isinstance(node, Mapping):
        for entry in node.entries:
            yield entry.key
            yield from scalars(resolve_alias(entry.value))
