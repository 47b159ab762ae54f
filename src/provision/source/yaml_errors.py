"""Explains libyaml's syntax errors."""

from __future__ import annotations

import yaml

from provision.diagnostics import Diagnostic, RelatedLocation
from provision.source.findings import make_finding
from provision.source.text import TextFile

# A problem of libyaml 0.2.5 (scanner.c, parser.c), a plain description, and a fix.
_EXPLANATIONS = {
    "mapping values are not allowed in this context": (
        "a `:` where no key can stand",
        "put a value that holds `: ` in quotes, or check the indentation",
    ),
    "could not find expected ':'": ("a key without its `:`", "write it as in: key: value"),
    "did not find expected key": (
        "the indentation does not fit, or a key is missing here",
        "keys of one mapping start in the same column",
    ),
    "did not find expected '-' indicator": (
        "an item of a list without its `-`",
        "items of one list start in the same column",
    ),
    "did not find expected ',' or ']'": ("the list opened with [ is not closed", "close it with ]"),
    "did not find expected ',' or '}'": (
        "the mapping opened with { is not closed",
        "close it with }",
    ),
    "found unexpected end of stream": ("the quote is never closed", "close the quote"),
    "block sequence entries are not allowed in this context": (
        "an item of a list where none can stand",
        "start the list on a line of its own",
    ),
    "did not find expected node content": (
        "a value is missing, or a bracket is never closed",
        "close each [ and {",
    ),
    "found incompatible YAML document": (
        "a %YAML version that is not read",
        "delete the line: specs are YAML 1.2",
    ),
    "found undefined tag handle": (
        "a tag with an unknown handle",
        "delete the tag: specs hold plain YAML",
    ),
    "found unknown escape character": (
        "an escape that YAML does not know",
        "use single quotes, or double each backslash",
    ),
    "found invalid Unicode character escape code": (
        "an escape for no character (half of a surrogate pair?)",
        "write the character itself",
    ),
    "did not find expected <document start>": (
        "text after the end of the document",
        "start a further document with ---",
    ),
    "found a tab character that violates indentation": (
        "a tab in the indentation",
        "indent with spaces",
    ),
    "did not find expected alphabetic or numeric character": (
        "an anchor or alias without a name",
        "put a value that starts with & or * in quotes",
    ),
}


def explain_yaml_error(text: TextFile, error: yaml.YAMLError) -> Diagnostic:
    """Return the finding for an error of libyaml."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return make_finding(
            "syntax",
            f"the text cannot be read as YAML: {getattr(error, 'reason', error)}",
            text.span(0, 0),
        )
    at = min(error.problem_mark.index, len(text.content))
    problem = str(error.problem)
    message, hint = _EXPLANATIONS.get(problem, (problem, ""))
    character = text.content[at : at + 1]
    if problem == "found character that cannot start any token":
        message, hint = f"no value starts with {character}", "put it in quotes"
        if character == "\t":
            message, hint = "a tab in the indentation", "indent with spaces"
    related: tuple[RelatedLocation, ...] = ()
    if error.context_mark is not None and error.context_mark.index != error.problem_mark.index:
        begin = min(error.context_mark.index, len(text.content))
        context = f"{error.context or 'it began'}, from here"
        related = (RelatedLocation(text.span(begin, begin + 1), context),)
    end = at + 1 if character and character not in "\r\n" else at
    return make_finding("syntax", message, text.span(at, end), hint=hint, related=related)
