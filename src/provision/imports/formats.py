"""The formats of files that can be imported: how each is recognized, and its reader."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import PurePath
from typing import NamedTuple, cast

from provision.imports.model import FormatReader


class Format(NamedTuple):
    """A format of file.

    Args:
        name: Its name in messages.
        reader: Its reader as "MODULE:FUNCTION", loaded when a file has this format.
        names: Patterns of file names, in lower case, that only this format has.
        suffixes: Ends of file names that it shares with other formats.
        sign: Regular expression (multiline) that the text of a file contains if only its suffix
            fits; "" if the name must fit.
    """

    name: str
    reader: str
    names: tuple[str, ...]
    suffixes: tuple[str, ...] = ()
    sign: str = ""


_READERS = "provision.imports."
_YAML = (".yaml", ".yml")
REQUIREMENTS = Format(
    "requirements file",
    _READERS + "requirements:read_requirements",
    (
        "requirements*.txt",
        "requirements*.in",
        "*requirements.txt",
        "*requirements.in",
        "constraints*.txt",
        "*freeze*.txt",
    ),
    (".txt", ".in", ".out", ".lst", ".freeze"),
    # The first line that is not a comment is a requirement or an option of pip.
    r"\A(?:[ \t]*(?:#[^\n]*)?\r?\n)*[ \t]*(?:[A-Za-z0-9][\w.-]*[ \t]*"
    r"(?:\[[^\]\n]*\])?[ \t]*(?:[=<>!~;@#\\]|\r?$)|-[A-Za-z-]|Package +Version)",
)
FORMATS: tuple[Format, ...] = (
    Format("notebook", _READERS + "notebook:read", ("*.ipynb",)),
    Format(
        "conda package list",
        _READERS + "conda_files:read_package_list",
        (),
        (".txt", ".lock", ".list"),
        r"^@EXPLICIT[ \t]*\r?$|^# +\$ conda create --name|^# packages in environment at ",
    ),
    Format(
        "capture",
        _READERS + "captures:read_capture",
        (),
        (".json",),
        r'"schema"\s*:\s*"provision\.capture/',
    ),
    Format("pyproject.toml", _READERS + "pyproject:read_pyproject", ("pyproject.toml",)),
    Format("uv.lock", _READERS + "lock_files:read_uv_lock", ("uv.lock",)),
    Format("pylock.toml", _READERS + "lock_files:read_pylock", ("pylock.toml", "pylock.*.toml")),
    Format("pixi.toml", _READERS + "pixi:read_pixi", ("pixi.toml",)),
    REQUIREMENTS,
    Format("cog.yaml", _READERS + "container_files:read_cog", ("cog.yaml", "cog.yml")),
    Format(
        "dstack configuration",
        _READERS + "task_files:read_dstack",
        ("*.dstack.yml", "*.dstack.yaml"),
        _YAML,
        r"^type[ \t]*:[ \t]*(?:task|dev-environment|service)\b",
    ),
    Format(
        "conda environment",
        _READERS + "conda_files:read_environment",
        ("environment*.yml", "environment*.yaml"),
        _YAML,
        r"^dependencies[ \t]*:",
    ),
    Format(
        "SkyPilot task",
        _READERS + "task_files:read_skypilot",
        ("*.sky.yaml", "*.sky.yml", "skypilot.yaml"),
        _YAML,
        r"^(?:resources|setup|file_mounts|num_nodes)[ \t]*:",
    ),
    Format(
        "Dockerfile",
        _READERS + "dockerfile:read",
        ("dockerfile", "dockerfile.*", "*.dockerfile", "containerfile", "containerfile.*"),
    ),
    Format(
        "devcontainer.json",
        _READERS + "container_files:read_devcontainer",
        ("devcontainer.json", ".devcontainer.json"),
    ),
)
"""The first format that fits is taken: those that name their files before those by content."""

OTHER_FILES: dict[str, str] = {
    "poetry.lock": "import pyproject.toml, or the output of `poetry export`",
    "pdm.lock": "import pyproject.toml, or the output of `pdm export`",
    "pipfile": "import the output of `pipenv requirements`",
    "pipfile.lock": "import the output of `pipenv requirements`",
    "pixi.lock": "import pixi.toml",
    "setup.py": "import does not run programs: import the output of `pip freeze`",
    "setup.cfg": "import the output of `pip freeze`",
}
"""Files of other tools that have no reader, and what to import instead."""


def detect_format(path: PurePath, text: str) -> Format | None:
    """Return the format of a file by its name, else by its suffix and text; None if unknown."""
    name = path.name.lower()
    for file_format in FORMATS:
        if any(fnmatchcase(name, pattern) for pattern in file_format.names):
            return _refine(file_format, text)
    for file_format in FORMATS:
        is_shared = path.suffix.lower() in (*file_format.suffixes, "")
        if file_format.sign and is_shared and re.search(file_format.sign, text, re.MULTILINE):
            return file_format
    return None


def _refine(file_format: Format, text: str) -> Format:
    """Return the format of a list of conda that has the name of a requirements file."""
    if file_format is not REQUIREMENTS:
        return file_format
    explicit = next(other for other in FORMATS if other.name == "conda package list")
    return explicit if re.search(explicit.sign, text, re.MULTILINE) else file_format


def find_importable_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of files, out of those in a folder, that some format recognizes by name."""
    return tuple(
        name
        for name in names
        if any(
            fnmatchcase(name.lower(), pattern)
            for file_format in FORMATS
            for pattern in file_format.names
        )
    )


def load_reader(file_format: Format) -> FormatReader:
    """Return the reader of a format."""
    module, _, function = file_format.reader.partition(":")
    return cast("FormatReader", getattr(import_module(module), function))
