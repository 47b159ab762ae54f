"""Splits shell text into commands and words with their positions; nothing is executed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

_BLANK = re.compile(r"(?:[ \t]|\\\r?\n)+")
_OPERATOR = re.compile(r"\r?\n|\r|&&|\|\||;;|[;|()]|&(?!>)")
_REDIRECTION = re.compile(r"(?:\d*|&)(?:<<<|>>|>\||<>|[<>])(?:&[\d-]?)?[ \t]*")
_HEREDOC = re.compile(r"\d*<<(-?)[ \t]*(['\"]?)(\w+)\2")
_SUBSTITUTION = r"\$\((?:[^()]|\([^()]*\))*\)|\$\{[^}\s]{0,200}\}|`[^`]*`"
_WORD = re.compile(
    rf"""(?:[^\s;&|<>()\\'"$`]|\\(?:\r?\n|.)|'[^']*'|"(?:[^"\\]|\\.)*"|{_SUBSTITUTION}|\$)+""",
    re.DOTALL,
)
_PIECE = re.compile(r"""\\(\r?\n|.)|'([^']*)'|"((?:[^"\\]|\\.)*)\"""", re.DOTALL)
_ESCAPE_IN_QUOTES = re.compile(r'\\(?:\r?\n|([$`"\\]))')
_LITERAL = re.compile(r"\\.|'[^']*'", re.DOTALL)
_VARIABLE = re.compile(r"\$[A-Za-z_{(0-9@*#?]|`")
_REFERENCE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_PYTHON_VARIABLE = re.compile(r"\{[^{}A-Za-z_]*[A-Za-z_][^{}]*\}")
_BOUND = re.compile(r"[<>]=?[ \t]*\d[^\s;&|()'\"]*")
"""A bound of a version that is not quoted, as in `pip install transformers>=4.40`."""

_OPENING = ("if", "while", "until", "for", "case", "select")
_MOST_BLOCKS = 3
"""Conditions that a message names, the innermost ones."""
_CLOSING = ("fi", "done", "esac")
_TESTS = frozenset(("[", "[[", "test", "command", "which", "type", "grep", "nvidia-smi"))


class ShellWord(NamedTuple):
    """A word of a command.

    Args:
        text: The word without its quotes.
        start: Offset of its first character in the text.
        end: Offset after its last character.
        is_known: False if it contains a variable or the output of a command.
        is_redirected: True for a version with an unquoted `>` or `<`, which a shell takes as the
            name of a file; `text` contains it as it was meant.
    """

    text: str
    start: int
    end: int
    is_known: bool = True
    is_redirected: bool = False


class ShellCommand(NamedTuple):
    """A command: its words without redirections, and when it runs ("" for always)."""

    words: tuple[ShellWord, ...]
    condition: str = ""

    @property
    def text(self) -> str:
        """The words with one blank between them."""
        return " ".join(word.text for word in self.words)


def split_commands(
    content: str, start: int = 0, end: int | None = None, *, expands_braces: bool = False
) -> tuple[ShellCommand, ...]:
    """Return the commands of a range of a text.

    Args:
        content: The whole text; positions of words are offsets in it.
        start: Offset at which the commands start.
        end: Offset at which they end; default: the end of the text.
        expands_braces: True for lines of a notebook, in which {name} is a variable of Python.
    """
    splitter = _Splitter(content, len(content) if end is None else end, expands_braces)
    splitter.split(start)
    return tuple(splitter.commands)


def unquote(raw: str) -> str:
    """Return a word without its quotes and escapes."""

    def plain(match: re.Match[str]) -> str:
        escaped, single, double = match.groups()
        if escaped is not None:
            return "" if escaped.endswith("\n") else escaped
        if single is not None:
            return single
        return _ESCAPE_IN_QUOTES.sub(lambda inner: inner[1] or "", double)

    return _PIECE.sub(plain, raw)


def resolve_variables(command: ShellCommand, variables: Mapping[str, str]) -> ShellCommand:
    """Return a command with the values of known variables in place of their names."""
    if not variables or all(word.is_known for word in command.words):
        return command
    words = []
    for word in command.words:
        text = word.text
        if not word.is_known:
            text = _REFERENCE.sub(
                lambda match: variables.get(match[1] or match[2], match[0]), word.text
            )
        is_known = word.is_known or (text != word.text and _VARIABLE.search(text) is None)
        words.append(word._replace(text=text, is_known=is_known))
    return command._replace(words=tuple(words))


class _Splitter:
    """Reads commands from left to right."""

    def __init__(self, content: str, end: int, expands_braces: bool) -> None:
        self.content = content
        self.end = end
        self.expands_braces = expands_braces
        self.commands: list[ShellCommand] = []
        self.words: list[ShellWord] = []
        self.blocks: list[str] = []
        self.chain = ""
        self.heredoc = ""

    def split(self, position: int) -> None:
        """Read all commands from an offset on."""
        while position < self.end:
            position = self._read_token(position)
        self._finish_command("\n")

    def _read_token(self, position: int) -> int:
        """Read the next token and return the offset after it."""
        content, end = self.content, self.end
        if blank := _BLANK.match(content, position, end):
            return blank.end()
        if content[position] == "#":
            line_break = content.find("\n", position, end)
            return end if line_break < 0 else line_break
        if heredoc := _HEREDOC.match(content, position, end):
            self.heredoc = heredoc[3]
            return heredoc.end()
        if redirection := _REDIRECTION.match(content, position, end):
            target = _WORD.match(content, redirection.end(), end)
            return target.end() if target else redirection.end()
        if operator := _OPERATOR.match(content, position, end):
            self._finish_command(operator[0])
            if self.heredoc and operator[0].endswith("\n"):
                return self._skip_heredoc(operator.end())
            return operator.end()
        word = _WORD.match(content, position, end)
        if word is None:  # a quote that is never closed
            return position + 1
        return self._read_word(word)

    def _read_word(self, word: re.Match[str]) -> int:
        raw, end = word[0], word.end()
        if raw.isdigit() and self.content[end : end + 1] in ("<", ">"):
            redirection = _REDIRECTION.match(self.content, word.start(), self.end)
            if redirection:
                target = _WORD.match(self.content, redirection.end(), self.end)
                return target.end() if target else redirection.end()
        is_redirected = False
        bound = _BOUND.match(self.content, end, self.end)
        if bound and self.words:
            raw, end, is_redirected = raw + bound[0], bound.end(), True
        text = unquote(raw)
        is_known = _VARIABLE.search(_LITERAL.sub("", raw)) is None
        if self.expands_braces and _PYTHON_VARIABLE.search(raw):
            is_known = False
        self.words.append(ShellWord(text, word.start(), end, is_known, is_redirected))
        return end

    def _skip_heredoc(self, position: int) -> int:
        ending = re.compile(rf"^[ \t]*{re.escape(self.heredoc)}[ \t]*$", re.MULTILINE)
        self.heredoc = ""
        match = ending.search(self.content, position, self.end)
        return match.end() if match else self.end

    def _finish_command(self, operator: str) -> None:
        """Record the command that an operator ends."""
        words, self.words = self.words, []
        words = self._read_keywords(words)
        conditions = filter(None, (*self.blocks[-_MOST_BLOCKS:], self.chain))
        command = ShellCommand(tuple(words), " and ".join(conditions))
        if words:
            self.commands.append(command)
        if operator == "||" and words:
            self.chain = f"`{command.text}` fails"
        elif operator == "&&" and words and words[0].text in _TESTS:
            self.chain = f"`{command.text}` succeeds"
        elif operator not in ("&&", "||", "|"):
            self.chain = ""

    def _read_keywords(self, words: list[ShellWord]) -> list[ShellWord]:
        """Return a command without the keywords before it, and follow the blocks they open."""
        while words:
            keyword, rest = words[0].text, words[1:]
            test = " ".join(word.text for word in rest)
            if keyword in _OPENING:
                self.blocks.append("" if keyword in ("for", "select") else f"`{test}`")
                return []
            if keyword == "elif" and self.blocks:
                self.blocks[-1] = f"`{test}`"
                return []
            if keyword == "else" and self.blocks:
                self.blocks[-1] = f"not {self.blocks[-1]}"
            elif keyword in _CLOSING:
                del self.blocks[-1:]
            elif keyword not in ("then", "do", "{", "}", "!"):
                return words
            words = rest
        return words
