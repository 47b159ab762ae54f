"""The effects on this machine; performing one twice is safe."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from provision.agent.install.document import PackageToInstall
from provision.effects.code import RemoveCode, UnpackCode
from provision.effects.conda import CreateCondaPrefix
from provision.effects.packages import IndexSource, ListedFile, NamedIndex
from provision.effects.wheels import PackageSource


class InstallPython(NamedTuple):
    """Let uv download a managed CPython of this minor version."""

    minor: str


class CreateVenv(NamedTuple):
    """Create an empty virtual environment in place of anything at `path`."""

    path: Path
    minor: str


class InstallPackages(NamedTuple):
    """Install exactly these pins, with every file checked against its hash.

    Wheels come first, then what is built from source with them. The provenance of each package is
    written to the environment's installed.json.
    """

    environment: Path
    minor: str
    pins: tuple[PackageToInstall, ...]
    indexes: tuple[NamedIndex, ...] = ()
    shared: bool = False
    """Another program also installs packages there: these stay."""
    reinstall: tuple[str, ...] = ()
    """Names of pins to install again even if they have the right version."""
    sources: tuple[PackageSource, ...] = ()
    """Packages from paths and repositories: they are built, or used as a wheel, and installed."""
    earlier: Path | None = None
    """An earlier environment next to this new one: packages that both contain are copied from it,
    if their files are unchanged since they were compared there.
    """


class Damage(NamedTuple):
    """The differences between the files of an environment and what was installed.

    `packages` are names with the problem of each file, `startup_files` are files that no package
    lists and that Python reads at each start. `compared_by` is "size" (nothing was noted when they
    were installed), "size and modification time", or "sha256".
    """

    packages: tuple[tuple[str, tuple[str, ...]], ...] = ()
    startup_files: tuple[str, ...] = ()
    compared_by: str = "size"


class WriteFile(NamedTuple):
    """Write a file in one step (temporary file, fsync, rename)."""

    path: Path
    content: str | bytes
    mode: int | None = 0o644
    """None keeps the mode of an existing file."""


class DownloadFile(NamedTuple):
    """Download a file that an index lists; it must have the sha256 of the list."""

    path: Path
    file: ListedFile
    origin: IndexSource


class MakeFolder(NamedTuple):
    """Create a folder and its parents."""

    path: Path
    mode: int = 0o755


class RemoveTree(NamedTuple):
    """Remove our folder with its content; nothing happens if it is gone.

    `in_background`: it is out of the way at once, and its files are removed while the command goes
    on, until it releases the lock of its state.
    """

    path: Path
    in_background: bool = False


class MoveFile(NamedTuple):
    """Move a file in our folder on the same disk; nothing happens if it is gone."""

    path: Path
    destination: Path


class RemoveFileIfUnmodified(NamedTuple):
    """Remove a file that we wrote outside our folder if it still has this sha256.

    A file that was changed stays, and progress reports that.
    """

    path: Path
    sha256: str


class ReplaceSymlink(NamedTuple):
    """Point the symbolic link `path` at `target`, in place of our older link."""

    path: Path
    target: str


class CreateSymlink(NamedTuple):
    """Create the symbolic link `path`, outside our own folder, to `target`.

    Nothing that exists is replaced, except a link to `replaced_target`.
    """

    path: Path
    target: str
    replaced_target: str = ""


class RemoveSymlink(NamedTuple):
    """Remove a link that we made outside our folder if it still points at `target`.

    With `only_if_dangling`, only if the target is gone. Progress reports a link that stays.
    """

    path: Path
    target: str
    only_if_dangling: bool = False


class RunProbe(NamedTuple):
    """Run the probe in an environment, and write its report to `report`.

    `environment` is added to the caller's variables.
    """

    python: Path
    zipapp: Path
    expectations: Path
    report: Path
    timeout_s: int
    environment: tuple[tuple[str, str], ...] = ()
    selected_checks: tuple[str, ...] = ()


LocalEffect = (
    InstallPython
    | CreateVenv
    | CreateCondaPrefix
    | InstallPackages
    | WriteFile
    | MakeFolder
    | DownloadFile
    | MoveFile
    | ReplaceSymlink
    | CreateSymlink
    | RemoveTree
    | RemoveFileIfUnmodified
    | RemoveSymlink
    | RunProbe
    | UnpackCode
    | RemoveCode
)


class MonitorRequest(NamedTuple):
    """The record of a run: its path, its subject (spec, target) and its program.

    The values of the variables in `secrets` are kept out of it.
    """

    record: Path
    subject: Mapping[str, str]
    program: Mapping[str, str | int]
    secrets: tuple[str, ...]
