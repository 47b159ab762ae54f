"""Sources of modules in a notebook other than packages that it installs by name."""

from __future__ import annotations

import re

from provision.facts.package_releases import load_releases
from provision.imports.notebook import CellInstall
from provision.rules.notebook.context import NotebookContext
from provision.rules.notebook.installs import requests

_HARMLESS_PROGRAMS = frozenset(
    {
        *("cat", "date", "df", "du", "echo", "free", "head", "ls", "lscpu", "nvcc", "nvidia-smi"),
        *("pwd", "tail", "tree", "uname", "uptime", "which"),
    }
)
"""Programs that write no file and install nothing."""
_OTHER_SOURCES = re.compile(
    r"""
      ^[ \t]*%%(?!time|capture|html|javascript|latex|markdown|svg)
    | ^[ \t]*%(?:cd|run|load|load_ext|pushd|sx|system)\b
    | \bsys\s*\.\s*(?:path|modules|meta_path)\b
    | \b(?:import_module|__import__|addsitedir|exec|eval|subprocess|get_ipython|chdir)\b
    | \bos\s*\.\s*(?:system|popen)\b
    | \b(?:drive\.mount|files\.upload|torch\.hub|Repo)\b
    | \b(?:urlretrieve|snapshot_download|hf_hub_download)\b
    | \b(?:write_text|write_bytes|extractall|unpack_archive|shutil|zipfile|tarfile|symlink)\b
    | \bopen\s*\([^)]*['"][wax]b?\+?['"]
    | \.py\b
    """,
    re.VERBOSE | re.MULTILINE,
)
"""Code that writes or downloads files, changes where Python looks for modules, or runs text."""


_NAME_END = re.compile(r"[<>=!~\[]")
_HARMLESS_OPTIONS = frozenset(
    {
        *("-q", "-qq", "-qqq", "--quiet", "-U", "--upgrade", "-qU", "-Uq", "-y", "--no-cache-dir"),
        *("--system", "--disable-pip-version-check", "--pre", "--no-deps", "--progress-bar=off"),
        *("--force-reinstall", "--root-user-action=ignore"),
    }
)
"""Options of pip and uv that name no further source of modules."""


def has_other_sources(context: NotebookContext) -> bool:
    """Return whether a module may come from elsewhere than from packages installed by name.

    Files, repositories, folders of modules, and packages of conda and apt are such sources.
    """
    installs = {install.span: install for install in context.notebook.installs}
    for command in context.notebook.commands:
        install = installs.get(command.span)
        if install is None:
            words = command.command.words
            if words and words[0].text not in _HARMLESS_PROGRAMS:
                return True
        elif not _is_by_name(install):
            return True
    return any(
        cell.kind == "code" and _OTHER_SOURCES.search(cell.source)
        for cell in context.notebook.cells
    )


def may_be_required(context: NotebookContext, package: str) -> bool:
    """Return whether a package that a cell or the spec requests may require `package`."""
    releases = load_releases()
    for name in requested_names(context):
        if name not in releases:
            return True
        for group in releases[name].groups:
            requirements = (text.partition("@")[0] for text in group.requires.split())
            if any(_NAME_END.split(text)[0] == package for text in requirements):
                return True
    return False


def requested_names(context: NotebookContext) -> frozenset[str]:
    """Return the packages that cells install and that the spec lists."""
    names = {request.name for request in requests(context)}
    if context.spec is not None:
        names |= {package.key for package in context.spec.packages}
        names |= {package.name for package in context.spec.conda_packages}
    return frozenset(names)


def _is_by_name(install: CellInstall) -> bool:
    """Return whether a command only installs packages of pip that it names."""
    options = frozenset(install.options)
    named = len(install.arguments) - len(options)
    return install.tool == "pip" and named == len(install.packages) and options <= _HARMLESS_OPTIONS
