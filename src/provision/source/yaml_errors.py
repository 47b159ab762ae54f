"""Explains libyaml's syntax errors."""

from __future__ import annotations

import yaml

from provision.diagnostics import Diagnostic, RelatedLocation
from provision.source.findings import make_finding
from provision.source.nodes import TextFile

_TOO_DEEP = "exceeded maximum nesting depth"
"""The problem of libyaml 0.2.6 at 1,000 open brackets. It reads ahead, so that it may reach them
before the parser reports the first.
"""
# A problem of libyaml 0.2.5 (scanner.c, parser.c), a plain description, and a fix.
_EXPLANATIONS = {
    "mapping values are not allowed in this context": (
        "unexpected `:`",
        "quote a value that contains `: `, or check the indentation",
    ),
    "could not find expected ':'": ("expected `:` after a key", "for example: key: value"),
    "did not find expected key": (
        "wrong indentation, or a key is missing",
        "start the keys of one mapping in the same column",
    ),
    "did not find expected '-' indicator": (
        "expected `-` before a list item",
        "start the items of one list in the same column",
    ),
    "did not find expected ',' or ']'": ("the list opened with [ is not closed", "close it with ]"),
    "did not find expected ',' or '}'": (
        "the mapping opened with { is not closed",
        "close it with }",
    ),
    "found unexpected end of stream": ("the quote is never closed", "close the quote"),
    "block sequence entries are not allowed in this context": (
        "unexpected list item",
        "start the list on a new line",
    ),
    "did not find expected node content": (
        "a value is missing, or a bracket is never closed",
        "close each [ and {",
    ),
    "found incompatible YAML document": (
        "unsupported %YAML version",
        "delete the line: specs are YAML 1.2",
    ),
    "found undefined tag handle": (
        "unknown tag handle",
        "delete the tag: specs are plain YAML",
    ),
    "found unknown escape character": (
        "unknown escape sequence",
        "use single quotes, or double each backslash",
    ),
    "found invalid Unicode character escape code": (
        "escape sequence for an invalid character (half of a surrogate pair?)",
        "write the character itself",
    ),
    "did not find expected <document start>": (
        "text after the end of the document",
        "start another document with ---",
    ),
    "found a tab character that violates indentation": (
        "a tab in the indentation",
        "indent with spaces",
    ),
    "did not find expected alphabetic or numeric character": (
        "an anchor or alias without a name",
        "quote a value that starts with & or *",
    ),
}


def explain_yaml_error(text: TextFile, error: yaml.YAMLError) -> Diagnostic:
    """Return the finding for an error of libyaml."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return make_finding(
            "syntax",
            f"invalid YAML: {getattr(error, 'reason', error)}",
            text.span(0, 0),
        )
    at = min(error.problem_mark.index, len(text.content))
    problem = str(error.problem)
    if problem == _TOO_DEEP:
        return make_finding("limit", "too many levels of nesting", text.span(at, at + 1))
    message, hint = _EXPLANATIONS.get(problem, (problem, ""))
    character = text.content[at : at + 1]
    if problem == "found character that cannot start any token":
        message, hint = f"a value cannot start with {character}", "put it in quotes"
        if character == "\t":
            message, hint = "a tab in the indentation", "indent with spaces"
    if character == "[" and problem.startswith("did not find expected ',' or "):
        message = "unexpected `[` in an unquoted value"
        hint = 'put it in quotes, as in "transformers[torch]"'
    related: tuple[RelatedLocation, ...] = ()
    if error.context_mark is not None and error.context_mark.index != error.problem_mark.index:
        begin = min(error.context_mark.index, len(text.content))
        context = f"{error.context or 'started'} here"
        related = (RelatedLocation(text.span(begin, begin + 1), context),)
    end = at + 1 if character and character not in "\r\n" else at
    return make_finding("syntax", message, text.span(at, end), hint=hint, related=related)
