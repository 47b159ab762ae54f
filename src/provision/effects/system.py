"""The protocols of the outside world: `Reader` looks, `System` also changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

    from provision.effects.code import CodeReader
    from provision.effects.conda import CondaChannel, CondaProgram, CondaRecord, CondaSolveRequest
    from provision.effects.google import CloudReader
    from provision.effects.local import Damage, LocalEffect, MonitorRequest
    from provision.effects.machine import MachineResources
    from provision.effects.packages import (
        IndexAddresses,
        IndexSource,
        ListedFile,
        NamedIndex,
        PackageSources,
        PythonSearchResult,
        Release,
        Resolution,
        UvProject,
    )
    from provision.effects.service import ServiceEffect
    from provision.effects.wheels import BuiltWheel, PackageSource, RepositoryPackage
    from provision.kinds.places import Machine

ProgressCallback = Callable[[str], None]
"""Receives a line: a step that begins, a Notice, DownloadProgress, or lines of ProgramOutput."""


class Notice(str):
    """A line of progress that informs about something, and is not a step that takes time."""

    __slots__ = ()


class ProgramOutput(str):
    """Output of the user's program elsewhere: whole lines, for standard output."""

    __slots__ = ()


class DownloadProgress(str):
    """A line of progress with its numbers. Each event replaces the one before.

    Args:
        phase: the verb of the line, such as "downloading" or "installing".
        packages_done: the packages that are complete.
        packages_total: the packages of this phase as far as known, None if unknown.
        bytes_done: the bytes of those packages, None if unknown.
        bytes_total: the bytes of this phase as far as known, None if unknown.
    """

    phase: str
    packages_done: int
    packages_total: int | None
    bytes_done: int | None
    bytes_total: int | None

    def __new__(
        cls,
        phase: str,
        packages_done: int,
        packages_total: int | None,
        bytes_done: int | None,
        bytes_total: int | None,
    ) -> Self:
        """Return the event; its text is the line for a log."""
        total = "" if packages_total is None else f" of {packages_total}"
        noun = "package" if packages_total == 1 else "packages"
        text = f"{phase} {packages_done}{total} {noun}"
        if bytes_done is not None:
            unit, size = ("GB", 1e9) if (bytes_total or bytes_done) >= 1e9 else ("MB", 1e6)
            total = f" of {bytes_total / size:.1f}" if bytes_total else ""
            text += f", {bytes_done / size:.1f}{total} {unit}"
        event = super().__new__(cls, text)
        event.phase = phase
        event.packages_done, event.packages_total = packages_done, packages_total
        event.bytes_done, event.bytes_total = bytes_done, bytes_total
        return event


Effect: TypeAlias = "LocalEffect | ServiceEffect"


class Reader(Protocol):
    """Reads from the outside world without changing it.

    Methods return in well under a second unless their docstring notes that they may block.
    """

    def environment(self) -> Mapping[str, str]:
        """Return the environment variables of the calling process."""

    def read(self, path: Path, limit: int) -> bytes:
        """Return the content of a regular file.

        Raises:
            ExternalError: the file is missing, unreadable, not a regular file, or longer than
                `limit` bytes.
        """

    def exists(self, path: Path) -> bool:
        """Return whether a file or folder is at `path`; a dangling symbolic link is not one."""

    def code(self) -> CodeReader:
        """Return the reader of projects' code and of commits."""

    def find_wheel(self, source: PackageSource, python: str) -> BuiltWheel | None:
        """Return the wheel of a package; None if it was not built yet from these files."""

    def read_link(self, path: Path) -> str | None:
        """Return the target of a symbolic link as it is written, None if `path` is not a link."""

    def list_folder(self, path: Path) -> tuple[str, ...]:
        """Return the sorted names in a folder, () if it does not exist."""

    def find_damage(
        self,
        environment: Path,
        minor: str,
        names: tuple[str, ...],
        *,
        hashed: bool = False,
        shared: bool = False,
    ) -> Damage:
        """Return how the files of packages differ from what was installed.

        About 8 ms for 1000 files. May block for minutes with `hashed`.

        Args:
            environment: the folder of the environment.
            minor: its Python, such as "3.11".
            names: canonical names of the packages; those that are not installed are left out.
            hashed: read every file, not only those whose size or modification time changed.
            shared: another program also installs packages there, so a file that no package lists
                is not reported.
        """

    def find_running_programs(self, environment: Path) -> tuple[str, ...]:
        """Return the programs that run in an environment, as "process PID: PROGRAM".

        Only programs that `provision run` or Jupyter started are known.
        """

    def is_writable(self, path: Path) -> bool:
        """Return whether `path`, or the nearest existing folder above it, is writable."""

    def find_pythons(self, minor: str) -> PythonSearchResult:
        """Return the interpreters on this machine, and the one to use for a minor version."""

    def find_package_sources(self, indexes: tuple[NamedIndex, ...], minor: str) -> PackageSources:
        """Return the package sources of this machine: mirrors, overrides and local folders.

        Args:
            indexes: the indexes that a project names, at their public addresses.
            minor: the project's Python, such as "3.11".
        """

    def conda_program(self) -> CondaProgram | None:
        """Return the program that makes conda environments, None without the extra `conda`."""

    def conda_folders(self, program: CondaProgram) -> tuple[Path, ...]:
        """Return the folders in which the user's conda looks for environments, in its order.

        () if the program does not report them.
        """

    def channel_addresses(self, channels: tuple[CondaChannel, ...]) -> Mapping[str, str]:
        """Return the public address of each conda channel by name, ending in a slash.

        Raises:
            ExternalError: the extra `conda` is not installed.
        """

    def find_index_addresses(self, indexes: tuple[NamedIndex, ...], minor: str) -> IndexAddresses:
        """Return the addresses of indexes for an installer on this machine.

        The default index is left out if it is uv's default.
        """

    def list_index_files(
        self, questions: Sequence[tuple[str, IndexSource]]
    ) -> Mapping[tuple[str, str], tuple[ListedFile, ...] | None]:
        """Return the files that indexes list, by (package, index name). May block for minutes.

        The value is None if the index does not know the package.

        Args:
            questions: canonical package names and the index to query for each.

        Raises:
            NetworkError: an index cannot be reached, or its answer cannot be read.
        """

    def facts_folder(self, sha256: str) -> Path:
        """Return the folder of this machine for the fact tables of an archive; it may not exist."""

    def find_vulnerabilities(
        self, packages: Sequence[tuple[str, str]], address: str
    ) -> Mapping[tuple[str, str], tuple[str, ...]]:
        """Return the ids of known vulnerabilities by (package, version). May block for minutes.

        Args:
            packages: canonical names and versions.
            address: a service with the interface of OSV.

        Raises:
            NetworkError: it cannot be reached, or its answer cannot be read.
        """

    def list_conda_files(
        self, records: Sequence[CondaRecord], channels: tuple[CondaChannel, ...]
    ) -> Mapping[tuple[str, str, str], str]:
        """Return the sha256 that channels list now, by (channel, subdir, file). May block.

        The value is "" if the channel lists the file without one.

        Raises:
            NetworkError: a channel cannot be reached.
            ExternalError: the extra `conda` is not installed.
        """

    def platform(self) -> str:
        """Return the platform of this machine, such as "linux-x86_64"."""

    def missing_system_packages(self, names: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return the Debian packages that are not installed, None without dpkg."""

    def machine_resources(self, folder: Path, *, with_gpus: bool) -> MachineResources:
        """Return the resources of this machine, with the free disk at `folder`."""

    def machine(self, folder: Path) -> Machine:
        """Return the Python of `folder`, the GPUs and the system of this machine."""

    def cloud(self) -> CloudReader:
        """Return the reader of Google Cloud.

        Raises:
            ExternalError: the extra `workbench` is not installed.
        """


class Revision(Protocol):
    """The files of a commit, by their paths in the checkout."""

    def read(self, path: Path, limit: int) -> bytes:
        """See Reader."""

    def exists(self, path: Path) -> bool:
        """See Reader."""

    def files(self) -> tuple[Path, ...]:
        """Return the paths of all files."""

    def close(self) -> None:
        """Release what reading needs."""


class System(Reader, Protocol):
    """Reads and changes the outside world, for the commands that change it.

    Every method that takes `progress` may block for minutes.
    """

    def resolve(self, project: UvProject, progress: ProgressCallback) -> Resolution:
        """Resolve a project to one set of versions.

        Raises:
            LockError: no set of versions fits; carries uv's derivation.
            NetworkError: an index cannot be reached.
        """

    def solve_conda(
        self, request: CondaSolveRequest, progress: ProgressCallback
    ) -> tuple[CondaRecord, ...]:
        """Return the conda packages that satisfy a request.

        Raises:
            Unsatisfiable: no set of packages fits.
            NetworkError: a channel cannot be reached.
            ExternalError: the extra `conda` is not installed.
        """

    def find_newest_release(self, project: UvProject) -> Release:
        """Return the newest release that a project's only requirement admits. May block.

        No file of it is downloaded or run.

        Raises:
            LockError: no release is admitted.
            NetworkError: an index cannot be reached.
        """

    def create_metadata_index(self, release: Release, index: NamedIndex | None) -> str:
        """Return the address of an index whose wheel has a source distribution's metadata only.

        May block. None of the distribution's code is run.

        Args:
            release: the release with its source distribution.
            index: the origin of the release, None for the default index.

        Raises:
            LockError: the metadata cannot be read.
            NetworkError: the source distribution cannot be downloaded.
        """

    def create_package_index(self, name: str, version: str, metadata: str) -> str:
        """Return the address of an index whose only wheel has this METADATA and no files."""

    def fetch_package(self, url: str, revision: str, subdirectory: str) -> RepositoryPackage:
        """Return the commit of a revision and the package's pyproject.toml. May block for minutes.

        The user's git reads it, with the user's credentials. None of its code is run.

        Args:
            url: the repository.
            revision: a branch, a tag or a commit; "" for the default branch.
            subdirectory: the folder of the package; "" for the top.

        Raises:
            LockError: the repository does not have the revision or folder.
            NetworkError: the repository cannot be reached.
        """

    def build_metadata(self, source: PackageSource, python: str, progress: ProgressCallback) -> str:
        """Build a package, which runs its code, and return the METADATA of its wheel.

        Raises:
            ExternalError: it cannot be built.
        """

    def build_wheel(self, source: PackageSource, python: str, progress: ProgressCallback) -> None:
        """Build the wheel that `find_wheel` returns, unless it exists. Runs the package's code.

        Raises:
            LockError: the files are not those that were planned or locked.
            Refused: the wheel runs on this machine only.
            ExternalError: it cannot be built.
        """

    def perform(self, effect: Effect, progress: ProgressCallback) -> None:
        """Perform one effect. Called after its intent is in the journal.

        Raises:
            ExternalError: with the reason and a hint; NetworkError if a service or index cannot
                be reached.
        """

    def run(
        self,
        argv: tuple[str, ...],
        environment: Mapping[str, str],
        watch: MonitorRequest | None = None,
        *,
        prefix: Path | None = None,
        folder: Path | None = None,
    ) -> int:
        """Run a program with the caller's terminal and return its exit code.

        Blocks until the program ends. Without `watch` the system may replace this process by the
        program, and then never returns.

        Args:
            argv: the program and its arguments.
            environment: all variables of the program.
            watch: the record of the run to write.
            prefix: the environment that the program keeps in use.
            folder: its working folder; None for the caller's.

        Returns:
            The exit code, negative for the signal that ended the program.

        Raises:
            ExternalError: the program does not exist or cannot be started.
        """

    def now(self) -> str:
        """Return the time in UTC, as 2026-11-20T12:00:00Z."""

    def token(self) -> str:
        """Return 32 random hexadecimal digits."""
