"""Phrases in docstrings and comments that the project's style replaces with plain English."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator

from measures.density import is_text
from measures.tree import SourceFile

OPENING = re.compile(r"(?:What|Which|How|Whether|Where|Who|When)\b(?!.*\?$)")
"""A first line that is a relative clause instead of a noun phrase or a verb."""
PHRASES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?<!there )\b(?:is|are|was|were) (?-i:no|none)\b(?! (?:longer|more|less))",
        r"\bof none\b",
        r"\bwhere (?:there|it|they|that|none|nothing|one) (?:is|are|was|has|have|does|do)\b",
        r"\b(?:tells?|told|telling|says|said|asks|asked|asking|speaks?|silent)\b",
        r"\b(?:knows|wants|wanted|holds|held)\b",
        r"\bof (?:ours|theirs|that name|(?:its|their|our) own)\b",
        r"\b(?:doors?|rooms?|islands?|parcels?|witness(?:es)?|homecoming|seats?)\b",
        r"\b(?:ways? out|on hand|at work|given back|cut short|carried|in one hand)\b",
        r"\b(?:let be|mends?|mended|make it so|makes it so|lies? in|beside|belongs? into)\b",
        r"\b(?:brings?|brought|comes?|came) home\b",
    )
)

PAGE_PHRASES = re.compile(
    r"\b(?:of (?:ours|theirs|that name)|doors?|rooms?|islands?|parcels?|homecoming|seats?"
    r"|ways? out|on hand|at work|given back|cut short|let be|mends?|mended|beside|belongs? into"
    r"|(?:brings?|brought|comes?|came) home|told|look-alikes?|anew"
    r"|where (?:there|they|none|one) (?:is|are|was|has|have)"
    r"|(?<!there )(?:is|are) no)\b(?! longer)",
    re.IGNORECASE,
)
"""Phrases that no page needs; verbs such as "says" are fine there, of a message or an output."""


def page_phrases(markdown: str) -> list[str]:
    """Return the forbidden phrases in the prose of a page, each with its line."""
    prose = re.sub(
        r"^```.*?^```$|`[^`\n]*`|\]\([^)]*\)|<a [^>]*>",
        lambda code: "\n" * code[0].count("\n"),
        markdown,
        flags=re.MULTILINE | re.DOTALL,
    )
    return [
        f"{number}: {match.group()}"
        for number, line in enumerate(prose.splitlines(), 1)
        for match in PAGE_PHRASES.finditer(line)
    ]


def forbidden_phrases(files: tuple[SourceFile, ...]) -> list[str]:
    """Return each forbidden phrase with its file and line."""
    phrases = []
    for file in files:
        for line, text, is_summary in _prose(file):
            if is_summary and (opening := OPENING.match(text)):
                phrases.append(f"{file.name}:{line} {opening.group()} ...")
            for pattern in PHRASES:
                matches = pattern.finditer(text)
                phrases.extend(f"{file.name}:{line} {match.group()}" for match in matches)
    return phrases


def _prose(file: SourceFile) -> Iterator[tuple[int, str, bool]]:
    """Yield the lines of docstrings and comments, and whether a line opens a docstring."""
    for node in ast.walk(file.tree):
        if is_text(node):
            assert isinstance(node, ast.Expr)
            assert isinstance(node.value, ast.Constant)
            for offset, line in enumerate(str(node.value.value).splitlines()):
                yield node.lineno + offset, line.strip(), offset == 0
    for token in tokenize.generate_tokens(io.StringIO(file.text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# "), False
