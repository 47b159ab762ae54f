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

from provision.errors import WorldError
from provision.world import files  # the other rooms are imported where they are used: what only looks at a spec does without them

if TYPE_CHECKING:
    from provision.effects import (
        Addresses,
        AwaitReport,
        CloudReader,
        CondaAsk,
        CondaChannel,
        CondaProgram,
        CondaRecord,
        Damage,
        Effect,
        Index,
        IndexSource,
        InstallPackages,
        Interpreter,
        Interpreters,
        ListedFile,
        OnGoogleCloud,
        Project,
        Release,
        Resolution,
        Sources,
        Tell,
        Watch,
    )
    from provision.world.awaiting import Clock
    from provision.world.cloud.pace import Pace
    from provision.world.cloud.services import Services
    from provision.world.pip_configuration import PipConfiguration

_PLATFORMS = {
    ("Linux", "x86_64"): "linux-x86_64",
    ("Linux", "aarch64"): "linux-aarch64",
    ("Darwin", "arm64"): "macos-arm64",
    ("Windows", "AMD64"): "windows-x86_64",
}
INSTALLED = "installed.json"
"""In an environment: how each of its packages came there (a result of provision.installing)."""


class Machine:
    """The real World (see provision.effects.World). `environment` is the caller's; `offline` keeps uv to its cache.

    `endpoints` are addresses by service that stand in for Google's own (see provision.world.cloud), as a sandbox gives them; `clock` is how a device's report
    is waited for, `pace` how long the services are.
    """

    def __init__(
        self,
        environment: Mapping[str, str] | None = None,
        *,
        offline: bool = False,
        endpoints: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        pace: Pace | None = None,
    ) -> None:
        self._environment = dict(os.environ if environment is None else environment)
        self._offline = offline
        self._endpoints = endpoints
        self._clock = clock
        self._pace = pace
        self._cloud: Services | None = None
        self._found: dict[str, Interpreter] = {}
        self._told: set[str] = set()

    def environment(self) -> Mapping[str, str]:
        """Return the variables of the calling process."""
        return self._environment

    def read(self, path: Path, limit: int) -> bytes:
        """Return the content of a regular file; raises WorldError."""
        return files.read(path, limit)

    def exists(self, path: Path) -> bool:
        """Tell whether something is at `path`; a link whose end is gone counts as nothing."""
        return path.exists()

    def link(self, path: Path) -> str | None:
        """Return what a symbolic link points at; None where there is none."""
        return files.link_end(path)

    def entries(self, path: Path) -> tuple[str, ...]:
        """Return the sorted names in a folder; () when there is none."""
        return tuple(sorted(entry.name for entry in path.iterdir())) if path.is_dir() else ()

    def writable(self, path: Path) -> bool:
        """Tell whether `path` or the nearest folder above it may be written to."""
        return files.writable(path)

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

    def interpreters(self, minor: str) -> Interpreters:
        """Return what Pythons this machine has: our own first, then what uv finds; all of them are listed only when none fits."""
        from provision.effects import Interpreter, Interpreters
        from provision.world import uv

        if chosen := self._interpreter(minor):
            return Interpreters(minor, chosen, (chosen,), fetchable=False)
        listed = tuple(Interpreter(version, path) for version, path in uv.list_pythons(self._uv()))
        why_not = uv.why_not_fetched(minor, self._uv(), self._environment.get("UV_PYTHON_DOWNLOADS", ""))
        return Interpreters(minor, None, listed, not why_not, why_not)

    def sources(self, indexes: tuple[Index, ...], minor: str) -> Sources:
        """Return where packages come from on this machine."""
        from provision.world import mirrors

        return mirrors.sources(self._pip(), self._environment, indexes, minor)

    def missing_system_packages(self, names: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return those Debian packages that dpkg does not know as installed; None without dpkg."""
        if shutil.which("dpkg-query") is None:
            return None
        return tuple(name for name in names if not self._installed(name))

    def cloud(self) -> CloudReader:
        """Return what Google Cloud is asked through; raises WorldError when the extra `workbench` is missing."""
        return self._google().reader

    def conda_program(self) -> CondaProgram | None:
        """Return what makes conda environments on this machine; None without the extra `conda`."""
        from provision.world import conda_programs

        return conda_programs.found(self._environment)

    def conda_folders(self, program: CondaProgram) -> tuple[Path, ...]:
        """Return the folders in which the user's own conda looks for environments by name; () where it does not tell."""
        from provision.world import conda_programs

        return conda_programs.folders(program, self._environment)

    def channel_addresses(self, channels: tuple[CondaChannel, ...]) -> Mapping[str, str]:
        """Return the public address of each conda channel; raises WorldError without the extra `conda`."""
        from provision.world import conda

        return {channel.name: conda.public_address(channel) for channel in channels}

    def addresses(self, indexes: tuple[Index, ...], minor: str) -> Addresses:
        """Return where an installer on this machine finds each index, wheels that stand in for one laid out as an index of files."""
        from provision.effects import Addresses
        from provision.world import uv

        found = self.sources(indexes, minor)
        named = {source.name: uv.address(source, self._environment) for source in found.named}
        default = {"pypi": found.default.url} if found.default.url else {}
        return Addresses({**default, **named}, (*dict.fromkeys(str(wheel.parent) for wheel in found.wheels), *found.links))

    def listed_files(self, questions: Sequence[tuple[str, IndexSource]]) -> Mapping[tuple[str, str], tuple[ListedFile, ...] | None]:
        """Return the files that indexes list, by (package, index name); wheels that stand in for an index are hashed. Raises NetworkError."""
        from provision.world import index_pages

        return index_pages.list_all(questions, self._uv())

    def listed_conda(self, records: Sequence[CondaRecord], channels: tuple[CondaChannel, ...]) -> Mapping[tuple[str, str, str], str]:
        """Return the sha256 of what channels list, by (channel, subdir, file); raises NetworkError, WorldError."""
        from provision.world import conda

        return conda.list_hashes(records, channels, self._environment)

    def resolve(self, project: Project, tell: Tell) -> Resolution:
        """Resolve a project; raises LockError, NetworkError, WorldError."""
        from provision.world import uv

        sources = self.sources(project.indexes, project.python)
        self._tell_once(sources.notes, tell)
        return uv.resolve(project, sources, self._interpreter(project.python) or _own(), self._uv())

    def solve_conda(self, ask: CondaAsk, tell: Tell) -> tuple[CondaRecord, ...]:
        """Return what satisfies an ask of conda channels; raises Unsatisfiable, LockError, NetworkError, WorldError."""
        from provision.world import conda

        self._tell_once(conda.notes(ask.channels, self._environment), tell)
        return conda.solve(ask, self._environment, offline=self._offline)

    def newest(self, project: Project) -> Release:
        """Return the newest release that a project's only requirement admits; raises LockError, NetworkError, WorldError."""
        from provision.world import uv

        return uv.newest(project, self.sources(project.indexes, project.python), self._interpreter(project.python) or _own(), self._uv())

    def stand_in(self, release: Release, index: Index | None) -> str:
        """Return the address of an index with a wheel of a source distribution's metadata; raises LockError, NetworkError, WorldError."""
        from provision.world import sources_of_builds

        known = self.sources((index,) if index is not None else (), "")
        return sources_of_builds.stand_in(release, known.named[0] if known.named else known.default, self._uv())

    def perform(self, effect: Effect, tell: Tell) -> None:
        """Perform one effect; raises WorldError."""
        from provision import effects
        from provision.world import uv

        match effect:
            case effects.InstallPython():
                uv.install_python(effect, self._uv())
            case effects.CreateVenv():
                uv.create_venv(effect, self._python(effect.minor), self._uv())
            case effects.CreateCondaPrefix():
                from provision.world import conda_prefix

                tell(f"making {effect.path.name} with {effect.program.name}: {effect.program.because}")
                conda_prefix.create_prefix(effect, self._environment, self.now(), offline=self._offline)
            case effects.InstallPackages():
                self._install(effect, tell)
            case effects.WriteFile():
                files.write(effect.path, effect.content, effect.mode)
            case effects.MakeFolder():
                files.make_folder(effect.path, effect.mode)
            case effects.MoveFile():
                files.move(effect.path, effect.to)
            case effects.PointLink():
                files.point_link(effect.path, effect.target)
            case effects.RemoveTree():
                files.remove_tree(effect.path)
            case effects.RemoveUnchanged():
                if not files.remove_unchanged(effect.path, effect.sha256):
                    tell(f"{effect.path} was changed since it was written: it stays")
            case effects.AddLink():
                files.add_link(*effect)
            case effects.RemoveLink():
                if not files.remove_link(effect.path, effect.target, dead=effect.dead):
                    tell(f"{effect.path} leads elsewhere, or to an environment that is still there: it stays")
            case effects.RunProbe():
                from provision.world.probing import run_probe

                run_probe(effect, self._environment, tell)
            case effects.UploadObjects() | effects.CreateInstance() | effects.UpdateInstance() | effects.StopInstance() | effects.StartInstance():
                self._on_google(effect, tell)
            case effects.ResizeDisk() | effects.DeleteInstance() | effects.DeleteObjects() | effects.AwaitReport():
                self._on_google(effect, tell)
            case effects.RunOnColab() | effects.StopColab():
                from provision.world import colab

                colab.perform(effect, self._environment, tell)
            case _:
                assert_never(effect)

    def damage(self, environment: Path, minor: str, names: tuple[str, ...], *, hashed: bool = False, shared: bool = False) -> Damage:
        """Return how the files of these packages differ from what was installed."""
        from provision.world.environment_files import find_damage

        return find_damage(environment, environment / INSTALLED, minor, names, hashed=hashed, shared=shared)

    def users(self, environment: Path) -> tuple[str, ...]:
        """Return the programs that run in an environment, as "process PID: PROGRAM"."""
        from provision.world.in_use import users

        return users(environment)

    def run(self, argv: tuple[str, ...], environment: Mapping[str, str], watch: Watch | None = None, *, prefix: Path | None = None) -> int:
        """Become a program, or run it under watch; raises WorldError when there is no such program, or when it cannot be started."""
        from provision.world import process
        from provision.world.in_use import hold

        program = shutil.which(argv[0], path=environment.get("PATH"))
        if program is None:
            raise process.no_program(argv[0])
        if prefix is not None:  # arguments may hold secrets: program and script tell one run from another
            hold(prefix, " ".join([Path(argv[0]).name, *(word for word in argv[1:2] if word.endswith(".py"))]))
        try:
            if watch is None or sys.platform != "linux":
                process.become([program, *argv[1:]], environment)
            from provision.world.watching import watched

            return watched([program, *argv[1:]], environment, watch)
        except OSError as error:
            hint = "a script needs a first line such as #!/usr/bin/env python3" if error.errno == errno.ENOEXEC else ""
            raise WorldError(f"cannot start {program}", why=os.strerror(error.errno or 0), hint=hint) from error

    def _await_report(self, effect: AwaitReport, tell: Tell) -> None:
        from provision.world.awaiting import LOOPBACK, Clock, await_report

        report = await_report(effect, self.cloud(), tell, self._clock or (LOOPBACK if self._endpoints else Clock()))
        files.write(effect.report, report, 0o600)

    def _google(self) -> Services:
        if self._cloud is None:
            from provision.world.cloud.endpoints import Endpoints
            from provision.world.cloud.services import Services

            self._cloud = Services(Endpoints.of(self._endpoints) if self._endpoints else None, self._pace)
        return self._cloud

    def _on_google(self, effect: OnGoogleCloud, tell: Tell) -> None:
        from provision import effects

        google = self._google()
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
                google.clear(effect.prefix, tell)
            case effects.AwaitReport():
                self._await_report(effect, tell)
            case _:
                assert_never(effect)

    def _install(self, effect: InstallPackages, tell: Tell) -> None:
        from provision.world import uv

        result = uv.install(effect, self.sources(effect.indexes, effect.minor), self._uv())
        if effect.shared:
            from provision.world import conda_prefix

            result = conda_prefix.with_brought(result, effect.environment, effect.minor)
        files.write(effect.environment / INSTALLED, json.dumps(result, indent=1, sort_keys=True) + "\n", 0o644)
        for note in result["notes"]:
            tell(note)

    def _python(self, minor: str) -> Path:
        if (chosen := self._interpreter(minor)) is None:
            from provision.world.uv_answers import python_not_found

            raise python_not_found(self.interpreters(minor))
        return chosen.path

    def _interpreter(self, minor: str) -> Interpreter | None:
        """Return the Python of a minor version to use, None when none fits; uv is asked again only while there is none."""
        if minor not in self._found and (found := self._look_for(minor)):
            self._found[minor] = found
        return self._found.get(minor)

    def _look_for(self, minor: str) -> Interpreter | None:
        from provision.effects import Interpreter
        from provision.world import uv

        own = _own()
        if own.minor == minor and own.path.exists():
            return own
        path = uv.find_python(minor, self._uv())
        return Interpreter(uv.python_version(path, self._environment) or f"{minor}.0", path) if path else None

    def _uv(self) -> dict[str, str]:
        from provision.world import uv

        return {**uv.scrubbed(self._environment, self._pip()), **({"UV_OFFLINE": "1"} if self._offline else {})}

    def _pip(self) -> PipConfiguration:
        from provision.world.pip_configuration import read_pip_configuration

        return read_pip_configuration(self._environment)

    def _installed(self, name: str) -> bool:
        from provision.world import process

        answer = process.capture(["dpkg-query", "--show", "--showformat=${db:Status-Status}", name], self._environment)
        return answer.code == 0 and answer.stdout == "installed"

    def _tell_once(self, notes: tuple[str, ...], tell: Tell) -> None:
        for note in (note for note in notes if note not in self._told):
            self._told.add(note)
            tell(note)


def _own() -> Interpreter:
    """The interpreter that runs us, outside any virtual environment."""
    from provision.effects import Interpreter

    return Interpreter(platform.python_version(), Path(getattr(sys, "_base_executable", sys.executable)))
