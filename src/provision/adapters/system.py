"""This machine as a World: reads and performs, decides nothing."""

from __future__ import annotations

import errno
import json
import os
import platform
import secrets
import shutil
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from provision.adapters import (
    files,
)  # the other rooms are imported where they are used: what only looks at a spec does without them
from provision.errors import ExternalError

if TYPE_CHECKING:
    from provision.adapters.google.client import GoogleClient
    from provision.adapters.google.report_polling import PollingClock
    from provision.adapters.google.retry import RetryPolicy
    from provision.adapters.uv.pip_config import PipConfig
    from provision.effects import (
        AwaitReport,
        CloudReader,
        CondaChannel,
        CondaProgram,
        CondaRecord,
        CondaSolveRequest,
        Damage,
        Effect,
        GoogleCloudEffect,
        Index,
        IndexAddresses,
        IndexSource,
        InstallPackages,
        ListedFile,
        MonitorRequest,
        PackageSources,
        ProgressCallback,
        PythonInstallation,
        PythonSearchResult,
        Release,
        Resolution,
        UvProject,
    )

_PLATFORMS = {
    ("Linux", "x86_64"): "linux-x86_64",
    ("Linux", "aarch64"): "linux-aarch64",
    ("Darwin", "arm64"): "macos-arm64",
    ("Windows", "AMD64"): "windows-x86_64",
}
INSTALL_RECORD = "installed.json"
"""In an environment: how each of its packages came there (a result of provision.agent.install)."""


class RealSystem:
    """The real World (see provision.effects.World). `environment` is the caller's; `offline` keeps
    uv to its cache.

    `endpoints` are addresses by service that stand in for Google's own (see
    provision.adapters.google), as a sandbox gives them; `clock` is how a device's report
    is waited for, `pace` how long the services are.
    """

    def __init__(
        self,
        environment: Mapping[str, str] | None = None,
        *,
        offline: bool = False,
        endpoints: Mapping[str, str] | None = None,
        clock: PollingClock | None = None,
        pace: RetryPolicy | None = None,
    ) -> None:
        self._environment = dict(os.environ if environment is None else environment)
        self._offline = offline
        self._endpoints = endpoints
        self._clock = clock
        self._pace = pace
        self._client: GoogleClient | None = None
        self._interpreters: dict[str, PythonInstallation] = {}
        self._shown_notes: set[str] = set()

    def environment(self) -> Mapping[str, str]:
        """Return the variables of the calling process."""
        return self._environment

    def read(self, path: Path, limit: int) -> bytes:
        """Return the content of a regular file; raises WorldError."""
        return files.read(path, limit)

    def exists(self, path: Path) -> bool:
        """Tell whether something is at `path`; a link whose end is gone counts as nothing."""
        return path.exists()

    def read_link(self, path: Path) -> str | None:
        """Return what a symbolic link points at; None where there is none."""
        return files.read_symlink(path)

    def list_folder(self, path: Path) -> tuple[str, ...]:
        """Return the sorted names in a folder; () when there is none."""
        return tuple(sorted(entry.name for entry in path.iterdir())) if path.is_dir() else ()

    def is_writable(self, path: Path) -> bool:
        """Tell whether `path` or the nearest folder above it may be written to."""
        return files.is_writable(path)

    def now(self) -> str:
        """Return the time as 2026-11-20T12:00:00Z."""
        return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def token(self) -> str:
        """Return 32 fresh random hexadecimal digits."""
        return secrets.token_hex(16)

    def platform(self) -> str:
        """Return this machine's platform; an unlisted one is named as the system names it."""
        pair = (platform.system(), platform.machine())
        return _PLATFORMS.get(pair, "-".join(pair).lower())

    def find_pythons(self, minor: str) -> PythonSearchResult:
        """Return what Pythons this machine has: our own first, then what uv finds; all of them are
        listed only when none fits.
        """
        from provision.adapters.uv import commands
        from provision.effects import PythonInstallation, PythonSearchResult

        if chosen := self._interpreter(minor):
            return PythonSearchResult(minor, chosen, (chosen,), is_downloadable=False)
        listed = tuple(
            PythonInstallation(version, path)
            for version, path in commands.list_pythons(self._uv_environment())
        )
        why_not = commands.why_not_downloadable(
            minor, self._uv_environment(), self._environment.get("UV_PYTHON_DOWNLOADS", "")
        )
        return PythonSearchResult(minor, None, listed, not why_not, why_not)

    def find_package_sources(self, indexes: tuple[Index, ...], minor: str) -> PackageSources:
        """Return where packages come from on this machine."""
        from provision.adapters.uv import mirrors

        return mirrors.locate_sources(self._pip_config(), self._environment, indexes, minor)

    def missing_system_packages(self, names: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return those Debian packages that dpkg does not know as installed; None without dpkg."""
        if shutil.which("dpkg-query") is None:
            return None
        return tuple(name for name in names if not self._is_installed(name))

    def cloud(self) -> CloudReader:
        """Return what Google Cloud is asked through; raises WorldError when the extra `workbench`
        is missing.
        """
        return self._google_client().reader

    def conda_program(self) -> CondaProgram | None:
        """Return what makes conda environments on this machine; None without the extra `conda`."""
        from provision.adapters.conda import programs

        return programs.find_program(self._environment)

    def conda_folders(self, program: CondaProgram) -> tuple[Path, ...]:
        """Return the folders in which the user's own conda looks for environments by name; () where
        it does not tell.
        """
        from provision.adapters.conda import programs

        return programs.environment_folders(program, self._environment)

    def channel_addresses(self, channels: tuple[CondaChannel, ...]) -> Mapping[str, str]:
        """Return the public address of each conda channel; raises WorldError without the extra
        `conda`.
        """
        from provision.adapters.conda import solver

        return {channel.name: solver.public_channel_url(channel) for channel in channels}

    def find_index_addresses(self, indexes: tuple[Index, ...], minor: str) -> IndexAddresses:
        """Return where an installer on this machine finds each index, wheels that stand in for one
        laid out as an index of files.
        """
        from provision.adapters.uv import commands
        from provision.effects import IndexAddresses

        found = self.find_package_sources(indexes, minor)
        named = {
            source.name: commands.index_url(source, self._environment) for source in found.named
        }
        default = {"pypi": found.default.url} if found.default.url else {}
        return IndexAddresses(
            {**default, **named},
            (*dict.fromkeys(str(wheel.parent) for wheel in found.wheels), *found.find_links),
        )

    def list_index_files(
        self, questions: Sequence[tuple[str, IndexSource]]
    ) -> Mapping[tuple[str, str], tuple[ListedFile, ...] | None]:
        """Return the files that indexes list, by (package, index name); wheels that stand in for an
        index are hashed. Raises NetworkError.
        """
        from provision.adapters.uv import simple_index

        return simple_index.list_files_of_packages(questions, self._uv_environment())

    def list_conda_files(
        self, records: Sequence[CondaRecord], channels: tuple[CondaChannel, ...]
    ) -> Mapping[tuple[str, str, str], str]:
        """Return the sha256 of what channels list, by (channel, subdir, file); raises NetworkError,
        WorldError.
        """
        from provision.adapters.conda import solver

        return solver.list_hashes(records, channels, self._environment)

    def resolve(self, project: UvProject, tell: ProgressCallback) -> Resolution:
        """Resolve a project; raises LockError, NetworkError, WorldError."""
        from provision.adapters.uv import commands

        sources = self.find_package_sources(project.indexes, project.python)
        self._show_once(sources.notes, tell)
        return commands.resolve_project(
            project,
            sources,
            self._interpreter(project.python) or _running_interpreter(),
            self._uv_environment(),
        )

    def solve_conda(
        self, ask: CondaSolveRequest, tell: ProgressCallback
    ) -> tuple[CondaRecord, ...]:
        """Return what satisfies an ask of conda channels; raises Unsatisfiable, LockError,
        NetworkError, WorldError.
        """
        from provision.adapters.conda import solver

        self._show_once(solver.override_notes(ask.channels, self._environment), tell)
        return solver.solve(ask, self._environment, offline=self._offline)

    def find_newest_release(self, project: UvProject) -> Release:
        """Return the newest release that a project's only requirement admits; raises LockError,
        NetworkError, WorldError.
        """
        from provision.adapters.uv import commands

        return commands.newest_release(
            project,
            self.find_package_sources(project.indexes, project.python),
            self._interpreter(project.python) or _running_interpreter(),
            self._uv_environment(),
        )

    def create_metadata_index(self, release: Release, index: Index | None) -> str:
        """Return the address of an index with a wheel of a source distribution's metadata; raises
        LockError, NetworkError, WorldError.
        """
        from provision.adapters.uv import sdist_metadata

        known = self.find_package_sources((index,) if index is not None else (), "")
        return sdist_metadata.create_metadata_index(
            release, known.named[0] if known.named else known.default, self._uv_environment()
        )

    def perform(self, effect: Effect, tell: ProgressCallback) -> None:
        """Perform one effect; raises WorldError."""
        from provision import effects
        from provision.adapters.uv import commands

        match effect:
            case effects.InstallPython():
                commands.install_python(effect, self._uv_environment())
            case effects.CreateVenv():
                commands.create_venv(
                    effect, self._interpreter_path(effect.minor), self._uv_environment()
                )
            case effects.CreateCondaPrefix():
                from provision.adapters.conda import prefixes

                tell(
                    f"making {effect.path.name} with {effect.program.name}: {effect.program.reason}"
                )
                prefixes.create_prefix(effect, self._environment, self.now(), offline=self._offline)
            case effects.InstallPackages():
                self._install(effect, tell)
            case effects.WriteFile():
                files.write(effect.path, effect.content, effect.mode)
            case effects.MakeFolder():
                files.make_folder(effect.path, effect.mode)
            case effects.MoveFile():
                files.move(effect.path, effect.destination)
            case effects.ReplaceSymlink():
                files.set_symlink(effect.path, effect.target)
            case effects.RemoveTree():
                files.remove_tree(effect.path)
            case effects.RemoveFileIfUnmodified():
                if not files.remove_if_unmodified(effect.path, effect.sha256):
                    tell(f"{effect.path} was changed since it was written: it stays")
            case effects.CreateSymlink():
                files.create_symlink(*effect)
            case effects.RemoveSymlink():
                if not files.remove_symlink(
                    effect.path, effect.target, dead=effect.only_if_dangling
                ):
                    tell(
                        f"{effect.path} leads elsewhere, or to an environment that is "
                        "still there: it stays"
                    )
            case effects.RunProbe():
                from provision.adapters.probe_runner import run_probe

                run_probe(effect, self._environment, tell)
            case (
                effects.UploadObjects()
                | effects.CreateInstance()
                | effects.UpdateInstance()
                | effects.StopInstance()
                | effects.StartInstance()
            ):
                self._perform_on_google(effect, tell)
            case (
                effects.ResizeDisk()
                | effects.DeleteInstance()
                | effects.DeleteObjects()
                | effects.AwaitReport()
            ):
                self._perform_on_google(effect, tell)
            case effects.RunOnColab() | effects.StopColabSession():
                from provision.adapters import colab

                colab.perform(effect, self._environment, tell)
            case _:
                assert_never(effect)

    def find_damage(
        self,
        environment: Path,
        minor: str,
        names: tuple[str, ...],
        *,
        hashed: bool = False,
        shared: bool = False,
    ) -> Damage:
        """Return how the files of these packages differ from what was installed."""
        from provision.adapters.environment_damage import find_damage

        return find_damage(
            environment, environment / INSTALL_RECORD, minor, names, hashed=hashed, shared=shared
        )

    def find_running_programs(self, environment: Path) -> tuple[str, ...]:
        """Return the programs that run in an environment, as "process PID: PROGRAM"."""
        from provision.adapters.environment_usage import list_users

        return list_users(environment)

    def run(
        self,
        argv: tuple[str, ...],
        environment: Mapping[str, str],
        watch: MonitorRequest | None = None,
        *,
        prefix: Path | None = None,
    ) -> int:
        """Become a program, or run it under watch; raises WorldError when there is no such program,
        or when it cannot be started.
        """
        from provision.adapters import process
        from provision.adapters.environment_usage import mark_in_use

        program = shutil.which(argv[0], path=environment.get("PATH"))
        if program is None:
            raise process.program_not_found(argv[0])
        if (
            prefix is not None
        ):  # arguments may hold secrets: program and script tell one run from another
            mark_in_use(
                prefix,
                " ".join(
                    [Path(argv[0]).name, *(word for word in argv[1:2] if word.endswith(".py"))]
                ),
            )
        try:
            if watch is None or sys.platform != "linux":
                process.exec_program([program, *argv[1:]], environment)
            from provision.adapters.monitored_process import run_monitored

            return run_monitored([program, *argv[1:]], environment, watch)
        except OSError as error:
            hint = (
                "a script needs a first line such as #!/usr/bin/env python3"
                if error.errno == errno.ENOEXEC
                else ""
            )
            raise ExternalError(
                f"cannot start {program}", why=os.strerror(error.errno or 0), hint=hint
            ) from error

    def _await_report(self, effect: AwaitReport, tell: ProgressCallback) -> None:
        from provision.adapters.google.report_polling import (
            LOOPBACK_CLOCK,
            PollingClock,
            await_report,
        )

        report = await_report(
            effect,
            self.cloud(),
            tell,
            self._clock or (LOOPBACK_CLOCK if self._endpoints else PollingClock()),
        )
        files.write(effect.report, report, 0o600)

    def _google_client(self) -> GoogleClient:
        if self._client is None:
            from provision.adapters.google.client import GoogleClient
            from provision.adapters.google.endpoints import Endpoints

            self._client = GoogleClient(
                Endpoints.from_addresses(self._endpoints) if self._endpoints else None, self._pace
            )
        return self._client

    def _perform_on_google(self, effect: GoogleCloudEffect, tell: ProgressCallback) -> None:
        from provision import effects

        google = self._google_client()
        match effect:
            case effects.UploadObjects():
                google.upload(effect.objects, tell)
            case effects.CreateInstance():
                google.create(*effect[:-1], tell, instead_of=effect.instead_of)
            case effects.UpdateInstance():
                google.update(*effect, tell)
            case effects.ResizeDisk():
                google.resize(*effect, tell)
            case effects.StopInstance():
                google.stop(effect.name, tell)
            case effects.StartInstance():
                google.start(effect.name, tell)
            case effects.DeleteInstance():
                google.delete(effect.name, tell, lineage=effect.lineage)
            case effects.DeleteObjects():
                google.delete_folder(effect.prefix, tell)
            case effects.AwaitReport():
                self._await_report(effect, tell)
            case _:
                assert_never(effect)

    def _install(self, effect: InstallPackages, tell: ProgressCallback) -> None:
        from provision.adapters.uv import commands

        result = commands.install_packages(
            effect, self.find_package_sources(effect.indexes, effect.minor), self._uv_environment()
        )
        if effect.shared:
            from provision.adapters.conda import prefixes

            result = prefixes.with_conda_packages(result, effect.environment, effect.minor)
        files.write(
            effect.environment / INSTALL_RECORD,
            json.dumps(result, indent=1, sort_keys=True) + "\n",
            0o644,
        )
        for note in result["notes"]:
            tell(note)

    def _interpreter_path(self, minor: str) -> Path:
        if (chosen := self._interpreter(minor)) is None:
            from provision.adapters.uv.errors import python_not_found_error

            raise python_not_found_error(self.find_pythons(minor))
        return chosen.path

    def _interpreter(self, minor: str) -> PythonInstallation | None:
        """Return the Python of a minor version to use, None when none fits; uv is asked again only
        while there is none.
        """
        if minor not in self._interpreters and (found := self._find_interpreter(minor)):
            self._interpreters[minor] = found
        return self._interpreters.get(minor)

    def _find_interpreter(self, minor: str) -> PythonInstallation | None:
        from provision.adapters.uv import commands
        from provision.effects import PythonInstallation

        own = _running_interpreter()
        if own.minor == minor and own.path.exists():
            return own
        path = commands.find_python(minor, self._uv_environment())
        return (
            PythonInstallation(
                commands.python_version(path, self._environment) or f"{minor}.0", path
            )
            if path
            else None
        )

    def _uv_environment(self) -> dict[str, str]:
        from provision.adapters.uv import commands

        return {
            **commands.isolated_environment(self._environment, self._pip_config()),
            **({"UV_OFFLINE": "1"} if self._offline else {}),
        }

    def _pip_config(self) -> PipConfig:
        from provision.adapters.uv.pip_config import read_pip_config

        return read_pip_config(self._environment)

    def _is_installed(self, name: str) -> bool:
        from provision.adapters import process

        answer = process.capture(
            ["dpkg-query", "--show", "--showformat=${db:Status-Status}", name], self._environment
        )
        return answer.code == 0 and answer.stdout == "installed"

    def _show_once(self, notes: tuple[str, ...], tell: ProgressCallback) -> None:
        for note in (note for note in notes if note not in self._shown_notes):
            self._shown_notes.add(note)
            tell(note)


def _running_interpreter() -> PythonInstallation:
    """The interpreter that runs us, outside any virtual environment."""
    from provision.effects import PythonInstallation

    return PythonInstallation(
        platform.python_version(), Path(getattr(sys, "_base_executable", sys.executable))
    )
