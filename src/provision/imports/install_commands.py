"""Recognizes commands that install packages: pip, uv, conda and apt."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from provision.imports.quoting import quote_text
from provision.imports.shell import ShellCommand, ShellWord
from provision.spelling import nearest_word

InstallTool = Literal["pip", "conda", "apt"]

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_PIP = re.compile(r"pip(?:3(?:\.\d+)?)?(?:\.exe)?")
_PYTHON = re.compile(r"(?:python(?:3(?:\.\d+)?)?|pypy3?)(?:\.exe)?|\{sys\.executable\}|\$PYTHON")
_CONDA = frozenset(("conda", "mamba", "micromamba"))
_RUNNERS = frozenset((*_CONDA, "poetry", "pdm", "pipenv", "pixi"))
_APT = frozenset(("apt", "apt-get", "aptitude"))
_OTHER_SYSTEMS = frozenset(("apk", "yum", "dnf", "microdnf", "zypper", "pacman", "brew"))
_WRAPPERS = frozenset(("sudo", "env", "time", "exec", "nohup", "command", "xvfb-run", "eatmydata"))
_WRAPPER_VALUES = frozenset(("-u", "-g", "--user", "-n", "--name", "-p", "--prefix"))
_MOST_SLIPS = 2
"""Letters by which a misspelled `install` differs; no other command of pip or uv is as near."""
_PROJECT_INSTALLERS = {
    ("uv", "sync"): "uv.lock",
    ("uv", "add"): "pyproject.toml",
    ("poetry", "install"): "pyproject.toml",
    ("poetry", "add"): "pyproject.toml",
    ("pdm", "install"): "pyproject.toml",
    ("pdm", "sync"): "pyproject.toml",
    ("pipenv", "install"): "Pipfile",
    ("pipenv", "sync"): "Pipfile.lock",
    ("pixi", "install"): "pixi.toml",
    ("pixi", "add"): "pixi.toml",
    ("hatch", "env"): "pyproject.toml",
}
"""Programs that install what a project file lists: the file."""


class InstallCommand(NamedTuple):
    """A command that installs packages.

    Args:
        tool: The kind of package: of the package index, of conda, or of the operating system.
        program: The command without arguments, such as "uv pip install".
        arguments: The words after the program, options included.
        command: All words of the command, and when it runs.
    """

    tool: InstallTool
    program: str
    arguments: tuple[ShellWord, ...]
    command: ShellCommand

    @property
    def start(self) -> int:
        """Offset of the first word."""
        return self.command.words[0].start

    @property
    def end(self) -> int:
        """Offset after the last word."""
        return self.command.words[-1].end


class RefusedCommand(NamedTuple):
    """A command that changes packages in a way that a spec cannot contain.

    Args:
        command: The command.
        why: The reason.
        help: What to do instead.
        file: The file that lists the packages, if another file does.
        is_misspelled: True if the program has no such command, and the name is near `install`.
    """

    command: ShellCommand
    why: str
    help: str = ""
    file: str = ""
    is_misspelled: bool = False


def read_command(command: ShellCommand) -> InstallCommand | RefusedCommand | None:
    """Return the packages that a command installs, None for a command that does something else."""
    words = _without_wrappers(command.words)
    if not words:
        return None
    program = PurePosixPath(words[0].text).name
    if _PYTHON.fullmatch(program) and [word.text for word in words[1:2]] == ["-m"]:
        words = words[2:]
        program = words[0].text if words else ""
    if _PIP.fullmatch(program):
        return _read_pip("pip", words[1:], command)
    if program == "uv" and [word.text for word in words[1:2]] == ["pip"]:
        return _read_pip("uv pip", words[2:], command)
    if program in _CONDA:
        return _read_conda(program, words[1:], command)
    if program in _APT:
        arguments = _after("install", words[1:])
        return None if arguments is None else _install("apt", program, arguments, command)
    return _refuse_other(program, words, command)


def is_package_command(text: str) -> bool:
    """Return whether a text may contain a command that installs packages; a quick first look."""
    return _MENTION.search(text) is not None


_MENTION = re.compile(
    r"\b(?:pip3?|uv|conda|mamba|micromamba|apt|apt-get|poetry|pdm|pipenv)\b|_INDEX"
)


def _without_wrappers(words: tuple[ShellWord, ...]) -> tuple[ShellWord, ...]:
    """Return a command without assignments, sudo, `conda run` and the like before it."""
    while words:
        name = PurePosixPath(words[0].text).name
        is_run = name in _RUNNERS and len(words) > 1 and words[1].text == "run"
        if _ASSIGNMENT.match(words[0].text):
            words = words[1:]
        elif is_run or name in _WRAPPERS:
            words = words[2:] if is_run else words[1:]
            while words and words[0].text.startswith("-"):
                words = words[2 if words[0].text in _WRAPPER_VALUES else 1 :]
        else:
            break
    return words


def _after(verb: str, words: tuple[ShellWord, ...]) -> tuple[ShellWord, ...] | None:
    """Return the words after a verb that only options precede, None without the verb."""
    for index, word in enumerate(words):
        if word.text == verb:
            return (*words[:index], *words[index + 1 :])
        if not word.text.startswith("-") and not _is_value(words, index):
            return None
    return None


def _is_value(words: tuple[ShellWord, ...], index: int) -> bool:
    """Return whether a word is the value of an option, such as `-o Dpkg::Use-Pty=0` of apt."""
    return index > 0 and words[index - 1].text in ("-o", "-c", "--proxy", "--log", "--cache-dir")


def _install(
    tool: InstallTool, program: str, arguments: tuple[ShellWord, ...], command: ShellCommand
) -> InstallCommand:
    return InstallCommand(tool, f"{program} install", arguments, command)


def _read_pip(
    program: str, words: tuple[ShellWord, ...], command: ShellCommand
) -> InstallCommand | RefusedCommand | None:
    arguments = _after("install", words)
    if arguments is not None:
        return _install("pip", program, arguments, command)
    if _after("sync", words) is not None:
        return RefusedCommand(
            command,
            f"{program} sync installs what a file lists",
            file="requirements.txt",
        )
    if _after("uninstall", words) is not None:
        return RefusedCommand(
            command,
            "a spec lists packages to install, not to remove",
            "no action is needed: the environment contains only locked packages",
        )
    verb = next((word.text for word in words if not word.text.startswith("-")), "")
    if nearest_word(verb, ("install",), _MOST_SLIPS) is None:
        return None
    return RefusedCommand(
        command,
        f"{program} has no command {quote_text(verb)}",
        f"use `{program} install`",
        is_misspelled=True,
    )


def _read_conda(
    program: str, words: tuple[ShellWord, ...], command: ShellCommand
) -> InstallCommand | RefusedCommand | None:
    verbs = [word.text for word in words if not word.text.startswith("-")]
    for verb in ("install", "create", "update"):
        arguments = _after(verb, words)
        if arguments is not None:
            return InstallCommand("conda", f"{program} {verb}", arguments, command)
    if verbs[:1] == ["env"] and verbs[1:2] in (["create"], ["update"]):
        return RefusedCommand(
            command,
            "the command installs what a file lists",
            file="environment.yml",
        )
    if verbs[:1] in (["remove"], ["uninstall"]):
        return RefusedCommand(
            command,
            "a spec lists packages to install, not to remove",
            "no action is needed: the environment contains only locked packages",
        )
    return None


def _refuse_other(
    program: str, words: tuple[ShellWord, ...], command: ShellCommand
) -> RefusedCommand | None:
    verbs = [word.text for word in words[1:] if not word.text.startswith("-")]
    if program in _OTHER_SYSTEMS and verbs[:1] and verbs[0] in ("add", "install"):
        return RefusedCommand(
            command,
            f"`system_packages` contains names of Debian packages, but {program} uses different "
            "names",
            "add these packages to `system_packages` under their Debian names",
        )
    file = _PROJECT_INSTALLERS.get((program, verbs[0] if verbs else ""))
    if file is not None:
        return RefusedCommand(
            command,
            f"{program} installs what {file} lists",
            file=file,
        )
    return None
