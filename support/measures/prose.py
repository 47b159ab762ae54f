"""Phrases in docstrings and comments that the project's style replaces with plain English."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator

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
        r"(?<!instead )\bof (?:ours|theirs|that name|(?:its|their|our) own)\b",
        r"\b(?:doors?|rooms?|islands?|parcels?|witness(?:es)?|homecoming|seats?)\b",
        r"\b(?:ways? out|on hand|at work|given back|cut short|carried|in one hand)\b",
        r"\b(?:let be|mends?|mended|make it so|makes it so|lies? in|beside|belongs? into)\b",
        r"\b(?:brings?|brought|comes?|came) home\b",
    )
)

PAGE_PHRASES = re.compile(
    r"(?<!-)\b(?:of (?:ours|theirs|that name)|doors?|rooms?|islands?|parcels?|homecoming|seats?"
    r"|ways? out|on hand|at work|given back|cut short|let be|mends?|mended|beside|belongs? into"
    r"|(?:brings?|brought|comes?|came) home|told|look-alikes?|anew"
    r"|where (?:there|they|none|one) (?:is|are|was|has|have)"
    r"|(?<!there )(?:is|are) no)\b(?! longer|-)",
    re.IGNORECASE,
)
"""Phrases that no page needs; verbs such as "says" are fine there, of a message or an output."""


def page_phrases(markdown: str) -> list[str]:
    """Return the forbidden phrases in the prose of a page, each with its line."""
    return [
        f"{number}: {match.group()}"
        for number, line in enumerate(_without_code(markdown).splitlines(), 1)
        for match in PAGE_PHRASES.finditer(line)
    ]


def reading_ease(pages: Iterable[str]) -> float:
    """Return the Flesch reading ease of the sentences of pages, without code, tables and headings.

    60 to 70 is plain English; technical documentation is usually between 40 and 60.
    """
    import textstat

    sentences = [
        line
        for page in pages
        for line in _without_code(re.sub(r"`[^`\n]+`", "code", page)).splitlines()
        if line.rstrip().endswith((".", ":")) and not line.lstrip().startswith(("|", "#", "<"))
    ]
    return float(textstat.flesch_reading_ease("\n".join(sentences)))


def _without_code(markdown: str) -> str:
    """Blank the code and the link targets of a page; the lines keep their numbers."""
    return re.sub(
        r"^```.*?^```$|`[^`\n]*`|\]\([^)]*\)|<a [^>]*>",
        lambda code: "\n" * code[0].count("\n"),
        markdown,
        flags=re.MULTILINE | re.DOTALL,
    )


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


ALLOWED_IN_MESSAGES = (
    "but strategy is none",  # the value of a field
    "fault silent-device",  # the name of a fault
    "held = os.open",  # the program of a kernel; kernels that exist would differ from it
)


def message_phrases(files: tuple[SourceFile, ...]) -> list[str]:
    """Return each forbidden phrase in the texts of the program: strings of three or more words."""
    return [
        f"{file.name}:{node.lineno} {match.group()}"
        for file in files
        for node in _texts(file)
        if not any(allowed in str(node.value) for allowed in ALLOWED_IN_MESSAGES)
        for pattern in (*PHRASES, PAGE_PHRASES)
        for match in pattern.finditer(str(node.value))
    ]


def _texts(file: SourceFile) -> Iterator[ast.Constant]:
    docstrings = {id(node.value) for node in file.nodes if is_text(node)}
    for node in file.nodes:
        is_string = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_string and id(node) not in docstrings and len(node.value.split()) >= 3:
            yield node


def _prose(file: SourceFile) -> Iterator[tuple[int, str, bool]]:
    """Yield the lines of docstrings and comments, and whether a line opens a docstring."""
    for node in file.nodes:
        if is_text(node):
            assert isinstance(node, ast.Expr)
            assert isinstance(node.value, ast.Constant)
            for offset, line in enumerate(str(node.value.value).splitlines()):
                yield node.lineno + offset, line.strip(), offset == 0
    for token in tokenize.generate_tokens(io.StringIO(file.text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# "), False
