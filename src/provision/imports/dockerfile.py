"""Reads a Dockerfile: its base image, the packages that it installs, and its variables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from provision.imports.images import add_image
from provision.imports.model import SourceText
from provision.imports.quoting import quote_text
from provision.imports.scripts import add_script
from provision.imports.shell import resolve_variables, split_commands
from provision.imports.tool_content import ToolContent
from provision.source.nodes import TextFile, to_text_file

if TYPE_CHECKING:
    from provision.imports.model import ImportContext, ImportedFile

_INSTRUCTION = re.compile(r"[ \t]*([A-Za-z]+)[ \t]+")
_COMMENT_OR_BLANK = re.compile(r"[ \t]*(?:#|$)")
_ESCAPE = re.compile(r"#[ \t]*escape[ \t]*=[ \t]*([\\`])", re.IGNORECASE)
_HEREDOC = re.compile(r"<<-?[ \t]*(['\"]?)(\w+)\1")
_FLAG = re.compile(r"(?:\\\r?\n|[ \t])*--[a-z-]+(?:=\S+)?")
_PACKAGE_FILE = re.compile(
    r"(?:requirements|constraints)[^/]*\.(?:txt|in)|environment[^/]*\.ya?ml|pyproject\.toml"
    r"|uv\.lock|pylock[^/]*\.toml|poetry\.lock|Pipfile(?:\.lock)?|pixi\.(?:toml|lock)"
)


class Instruction(NamedTuple):
    """An instruction: its name in capitals, and the range of its arguments."""

    name: str
    start: int
    end: int


class BuildStage(NamedTuple):
    """A stage of a build: its base image and its instructions, `FROM` included."""

    base: str
    name: str
    instructions: tuple[Instruction, ...]


def read(path: Path, text: str, context: ImportContext) -> ImportedFile:  # noqa: ARG001
    """Return what a Dockerfile installs, in the last stage and the stages that it is made of."""
    name = str(path)
    masked = mask_comments(text)
    file = TextFile(name, masked, bom=False, starts=to_text_file(name, text).starts)
    content = ToolContent("Dockerfile", (SourceText(name, text, name),))
    arguments, stages = _split_stages(file)
    bases = _find_used_stages(stages, "")
    used = _find_used_stages(stages, masked)
    for index, stage in enumerate(stages):
        before = len(content.settings)
        if index in used:
            _read_stage(stage, stages[:index], arguments, file, content)
            if index not in bases:  # only its packages are copied
                content.drop_settings(before)
        else:
            first = stage.instructions[0]
            content.leave(
                file.span(first.start, first.end),
                f"the stage {quote_text(stage.name or stage.base)} was not read",
                "the last stage does not use it",
            )
    return content.finish()


def mask_comments(text: str) -> str:
    """Return a Dockerfile in which comment lines inside instructions are blanks.

    Positions stay the same. Such lines, and empty ones, do not end an instruction.
    """
    escape = "`" if (match := _ESCAPE.match(text)) and match[1] == "`" else "\\"
    parts: list[str] = []
    is_continued = False
    for line in text.splitlines(keepends=True):
        bare = line.rstrip("\r\n")
        if is_continued and _COMMENT_OR_BLANK.match(bare):
            parts.append(" " * len(line))
            continue
        is_continued = bare.rstrip().endswith(escape) and not bare.lstrip().startswith("#")
        if is_continued:  # blanks after the escape are allowed, and a shell requires none
            stripped = bare.rstrip()
            blanks = " " * (len(bare) - len(stripped))
            parts += stripped[:-1], blanks, "\\", line[len(bare) :]
        else:
            parts.append(line)
    return "".join(parts)


def read_instructions(file: TextFile) -> Iterator[Instruction]:
    """Yield the instructions of a masked Dockerfile."""
    text, position = file.content, 0
    while position < len(text):
        end = file.end_of_line(position)
        match = _INSTRUCTION.match(text, position, end)
        if match is None or text[position:end].lstrip().startswith("#"):
            position = _next_line(text, end)
            continue
        while text[match.end() : end].endswith("\\") and end < len(text):
            end = file.end_of_line(_next_line(text, end))
        heredoc = _HEREDOC.search(text, match.end(), end)
        if heredoc and match[1].upper() in ("RUN", "COPY", "ADD"):
            closing = re.compile(rf"^[ \t]*{heredoc[2]}[ \t]*\r?$", re.MULTILINE)
            last = closing.search(text, end)
            end = last.end() if last else len(text)
        yield Instruction(match[1].upper(), match.end(), end)
        position = _next_line(text, end)


def _next_line(text: str, end: int) -> int:
    return end + (2 if text[end : end + 2] == "\r\n" else 1)


def _split_stages(file: TextFile) -> tuple[dict[str, str], list[BuildStage]]:
    """Return the arguments before the first stage, and the stages."""
    arguments: dict[str, str] = {}
    stages: list[BuildStage] = []
    for instruction in read_instructions(file):
        if instruction.name == "FROM":
            words = _words(file, instruction, arguments)
            names = [word for word in words if not word.startswith("--")]
            alias = names[2] if len(names) > 2 and names[1].upper() == "AS" else ""
            stages.append(BuildStage(names[0] if names else "", alias, (instruction,)))
        elif stages:
            last = stages[-1]
            stages[-1] = last._replace(instructions=(*last.instructions, instruction))
        elif instruction.name == "ARG":
            _read_argument(_words(file, instruction, arguments), arguments)
    return arguments, stages


def _words(file: TextFile, instruction: Instruction, variables: dict[str, str]) -> list[str]:
    """Return the words of an instruction, with the values of known variables."""
    commands = split_commands(file.content, instruction.start, instruction.end)
    return [
        word.text for command in commands for word in resolve_variables(command, variables).words
    ]


def _read_argument(words: list[str], variables: dict[str, str]) -> None:
    for word in words:
        name, equals, value = word.partition("=")
        if equals:
            variables[name] = value


def _find_used_stages(stages: list[BuildStage], text: str) -> set[int]:
    """Return the indexes of the last stage, of its bases and of the stages it copies from.

    Without the text, those that it copies from are left out.
    """
    names = {stage.name.lower(): index for index, stage in enumerate(stages) if stage.name}
    waiting, used = [len(stages) - 1], set()
    while waiting:
        index = waiting.pop()
        if index < 0 or index in used:
            continue
        used.add(index)
        stage = stages[index]
        references = [stage.base]
        for instruction in stage.instructions:
            if instruction.name in ("COPY", "ADD", "RUN"):
                arguments = text[instruction.start : instruction.end]
                references += re.findall(r"(?:--from=|,from=)([\w.-]+)", arguments)
        for reference in references:
            number = names.get(reference.lower())
            if number is None and reference.isdigit():
                number = int(reference)
            if number is not None and number < index:
                waiting.append(number)
    return used


def _read_stage(
    stage: BuildStage,
    earlier: list[BuildStage],
    arguments: dict[str, str],
    file: TextFile,
    content: ToolContent,
) -> None:
    variables: dict[str, str] = {}
    for instruction in stage.instructions:
        span = file.span(instruction.start, instruction.end)
        words = _words(file, instruction, variables)
        if instruction.name == "FROM":
            is_stage = stage.base.lower() in {before.name.lower() for before in earlier}
            if not is_stage and stage.base:
                add_image(stage.base, span, content)
        elif instruction.name == "ARG":
            known = [f"{word}={arguments[word]}" for word in words if word in arguments]
            _read_argument([*known, *words], variables)
        elif instruction.name == "ENV":
            _read_variables(words, instruction, file, content)
            _read_argument(words, variables)
        elif instruction.name in ("COPY", "ADD"):
            _note_copied_files(words, instruction, file, content)
        elif instruction.name == "RUN":
            _read_run(instruction, variables, file, content)


def _read_variables(
    words: list[str], instruction: Instruction, file: TextFile, content: ToolContent
) -> None:
    """Read `ENV NAME=value ...`, or `ENV NAME value` of old files."""
    span = file.span(instruction.start, instruction.end)
    if words and "=" not in words[0]:
        content.add_variable(words[0], " ".join(words[1:]), span)
        return
    for word in words:
        name, _, value = word.partition("=")
        content.add_variable(name, value, span)


def _note_copied_files(
    words: list[str], instruction: Instruction, file: TextFile, content: ToolContent
) -> None:
    """Note each copied file that lists packages; a file of another stage is not on this disk."""
    if any(word.startswith("--from") for word in words):
        return
    names = [word for word in words if not word.startswith("--")]
    for name in names[:-1]:
        if _PACKAGE_FILE.fullmatch(PurePosixPath(name.strip('[],"')).name):
            span = file.span(instruction.start, instruction.end)
            content.note_file(name.strip('[],"'), span)
    content.copied_files.update(PurePosixPath(name.strip('[],"')).name for name in names[:-1])


def _read_run(
    instruction: Instruction, variables: dict[str, str], file: TextFile, content: ToolContent
) -> None:
    text, start, end = file.content, instruction.start, instruction.end
    while flag := _FLAG.match(text, start, end):
        start = flag.end()
    heredoc = _HEREDOC.match(text, start, end)
    if heredoc:
        start, end = file.end_of_line(start), file.start_of_line(end)
    commands = split_commands(text, start, end)
    if text[start:end].lstrip().startswith("["):  # the form ["pip", "install", "torch"]
        masked = re.sub(r'[\[\],"]', " ", text[start:end])
        commands = split_commands(text[:start] + masked, start, end)
    add_script(content, commands, file, "RUN", variables=variables, has_exports=False)
