"""Installs packages with uv, and audits what uv keeps or takes from its cache."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.installed_packages import (
    AuditResult,
    InstalledPackage,
    audit_packages,
    build_install_result,
    find_installed_packages,
    find_locked_packages,
)
from ..core.process import ProcessResult
from .document import AuditLevel, InstallError, InstallMode, InstallRequest, PackageToInstall
from .uv_inputs import (
    BUILD_FILE,
    HASHES_FILE,
    PROJECT_FILE,
    UV_CONFIG_FILE,
    build_request_variables,
    with_own_wheels,
    write_project,
)

_PROGRAM = """
import json, sys, sysconfig
paths = sysconfig.get_paths()
new = [path for path in (paths["purelib"], paths["platlib"]) if path not in sys.path]
answer = {
    "minor": "%d.%d" % sys.version_info[:2],
    "entries": new + sys.path,
    "stdlib": paths["stdlib"],
    "venv": sys.prefix != sys.base_prefix,
}
sys.stdout.write(json.dumps(answer))
"""
EXTERNALLY_MANAGED_FILE = "EXTERNALLY-MANAGED"


RunProcess = Callable[["list[str]", Mapping[str, str], "Path | None"], ProcessResult]
"""Runs a program (arguments, variables, folder) to its end. Raises OSError if it cannot start."""


@dataclass(frozen=True, slots=True)
class TargetInterpreter:
    """An interpreter: folders of packages in sys.path's order; another installer's marker or ""."""

    python: str
    minor: str
    package_folders: tuple[str, ...]
    managed_marker: str


def inspect_interpreter(
    python: str, environment: Mapping[str, str], run: RunProcess
) -> TargetInterpreter:
    """Return what an interpreter reports about itself. Raises InstallError if it does not start.

    The user's own packages and PYTHONPATH are left out.

    The marker counts outside virtual environments only. Source: packaging.python.org,
    "Externally Managed Environments".
    """
    hint = "use a different interpreter, or repair this one"
    try:
        result = run([python, "-I", "-c", _PROGRAM], environment, None)
    except OSError as error:
        raise InstallError(
            f"cannot start the interpreter {python}", error.strerror or str(error), hint
        ) from None
    try:
        paths = json.loads(result.stdout) if result.code == 0 else None
    except ValueError:
        paths = None
    if not isinstance(paths, dict):
        raise InstallError(
            f"the interpreter {python} did not report its package folders",
            result.stderr.strip()[-500:] or f"exit code {result.code}",
            hint,
        )
    marker = os.path.join(paths["stdlib"], EXTERNALLY_MANAGED_FILE)
    is_managed = not paths["venv"] and os.path.isfile(marker)
    folders = tuple(dict.fromkeys(os.path.realpath(entry) for entry in paths["entries"] if entry))
    return TargetInterpreter(python, paths["minor"], folders, marker if is_managed else "")


_OFF = ("", "0", "false", "f", "no", "n", "off")


class UvFailed(Exception):
    """Uv ended with an error: its exit code and its output."""

    def __init__(self, code: int, output: str) -> None:
        super().__init__(f"uv failed (exit code {code})")
        self.code, self.output = code, output


def install_packages(
    request: InstallRequest,
    uv: str,
    environment: Mapping[str, str],
    run: RunProcess,
    folder: Path,
) -> dict[str, Any]:
    """Install the requested packages; return a JSON value with each one's version and provenance.

    uv compares the sha256 of downloaded files with the locked ones. Of a wheel in its cache it
    compares the noted sha256 and trusts the unpacked files, which environments may hard-link, so
    that an edit changes both. Packages are therefore compared with their RECORD (by
    `request.audit`), and reinstalled without the cache if they differ. Packages that are already
    installed in the requested version, which uv does not check, are compared too, and reinstalled
    if they differ or are in `request.reinstall`. An edit of a cached file together with its RECORD
    line is not detected.

    `environment` is scrubbed; with UV_OFFLINE=1, everything comes from uv's cache. `folder` is
    empty, for files that uv reads. Raises InstallError, and UvFailed: uv changes nothing before it
    has every file.
    """
    python = inspect_interpreter(request.python, environment, run)
    if python.minor != request.python_version:
        raise InstallError(
            f"{request.python} is Python {python.minor}, not Python {request.python_version}",
            f"the packages were locked for Python {request.python_version}",
            f"use an interpreter with Python {request.python_version}",
            1,
        )
    if request.wheels:
        request = with_own_wheels(request, python.package_folders, folder / "own-wheels")
    return _Installation(request, python, folder, uv, environment, run).perform()


@dataclass(frozen=True, slots=True)
class _Installation:
    """One installation: request, interpreter, scratch folder, uv and its variables."""

    request: InstallRequest
    python: TargetInterpreter
    folder: Path
    uv: str
    environment: Mapping[str, str]
    run: RunProcess

    def perform(self) -> dict[str, Any]:
        request, before = self.request, self._installed()
        kept = find_locked_packages(self._versions, before)
        audits = audit_packages(kept, hashed=self._hashed, among=before.values())
        damaged = {*_find_flawed(audits), *(kept.keys() & request.reinstall)}
        if damaged or len(kept) < len(request.packages) or request.mode is InstallMode.OWN:
            with _moved_aside(
                os.path.join(kept[name].metadata_folder, "RECORD")
                for name in damaged
                if audits[name].record_is_garbled or name in request.reinstall
            ):
                self._install(damaged)
        after, audits, notes = self._repair(before, _find_flawed(audits))
        mode, audit = request.mode.value, request.audit.value
        result = build_install_result(mode, audit, before, after, audits, notes)
        for name, compared in audits.items():
            result["packages"][name].update(compared.note.to_json())
        return result

    @property
    def _versions(self) -> dict[str, str]:
        return {package.name: package.version for package in self.request.packages}

    @property
    def _hashed(self) -> bool:
        return self.request.audit is AuditLevel.FULL

    def _installed(self) -> dict[str, InstalledPackage]:
        return find_installed_packages(self.python.package_folders)

    def _repair(
        self, before: Mapping[str, InstalledPackage], damaged: Collection[str]
    ) -> tuple[dict[str, InstalledPackage], dict[str, AuditResult], list[str]]:
        """Audit what uv installed, and reinstall packages from damaged cache entries."""
        after, audits = self._audit(before, damaged)
        spoiled = _find_flawed(audits)
        if not spoiled:
            return after, audits, []
        names = ", ".join(spoiled)
        if self.environment.get("UV_OFFLINE", "").lower() not in _OFF:
            raise InstallError(
                f"uv's cache contains damaged files for {names}, and network access is off",
                _format_flaws(audits, spoiled),
                f"run `uv cache clean {' '.join(spoiled)}`, then install again with network access",
            )
        try:
            self._install(spoiled, "--no-cache")
        except UvFailed as error:
            raise UvFailed(
                error.code,
                f"uv's cache contains damaged files for {names}, and downloading them again "
                "failed:\n"
                f"{error.output}",
            ) from None
        after, audits = self._audit(before, damaged)
        still = _find_flawed(audits)
        if stuck := [name for name in still if after[name] == before.get(name)]:
            raise InstallError(
                f"cannot repair {', '.join(stuck)}",
                _format_flaws(audits, stuck),
                "uninstall each of them with the tool that installed it"
                if len(stuck) > 1
                else "uninstall it with the tool that installed it",
                1,
            )
        notes = [
            f"{name}: uv's cache contained damaged files; `uv cache clean {name}` removes them"
            for name in spoiled
            if name not in still
        ]
        # Installed from a file with the locked hash and without any cache: the RECORD itself is
        # wrong.
        notes += [
            f"{name}: its RECORD does not match the files in its wheel: "
            f"{'; '.join(audits[name].flaws[:3])}"
            for name in still
        ]
        return after, audits, notes

    def _audit(
        self, before: Mapping[str, InstalledPackage], damaged: Collection[str]
    ) -> tuple[dict[str, InstalledPackage], dict[str, AuditResult]]:
        """Return the requested packages with their audits, in full for those that changed.

        The others are audited by size, because removing a package removes whatever its RECORD
        lists.

        Raises:
            InstallError: a version differs.
        """
        installed, versions = self._installed(), self._versions
        after = find_locked_packages(versions, installed)
        if wrong := versions.keys() - after.keys():
            lines = [
                f"{name} {versions[name]}: {_describe(installed.get(name))}"
                for name in versions
                if name in wrong
            ]
            raise InstallError(
                f"{len(wrong)} of {len(versions)} packages do not have the locked version, "
                "although uv reported success",
                "\n".join(lines[:5]),
                "remove any other copy that comes first on sys.path",
                1,
            )
        changed, others = dict[str, InstalledPackage](), dict[str, InstalledPackage]()
        for name, package in after.items():
            is_changed = name in damaged or package != before.get(name)
            (changed if is_changed else others)[name] = package
        return after, {
            **audit_packages(others, hashed=False, among=after.values()),
            **audit_packages(changed, hashed=self._hashed, among=after.values()),
        }

    def _install(self, reinstalled: Collection[str], *options: str) -> None:
        """Install the wheels, then build and install source packages with the locked torch.

        uv caches its builds by their source alone. The hashes of all packages are therefore passed
        as a build variable, so that it builds again for another torch.
        """
        request = self.request
        packages: Iterable[PackageToInstall] = request.packages
        verb = ["sync"]
        if request.mode is InstallMode.SHARED:
            # uv would query the index about the installed ones too.
            kept = find_locked_packages(self._versions, self._installed()).keys()
            due = (self._versions.keys() - kept).union(reinstalled)
            packages = [package for package in packages if package.name in due]
            verb = ["install", "--no-deps"]
        packages = list(packages)
        editables = [package for package in packages if package.editable]
        wheels = [package for package in packages if not (package.from_source or package.editable)]
        sources = [package for package in packages if package.from_source]
        if wheels or request.mode is InstallMode.OWN:
            self._call_uv(wheels, [*verb, "--only-binary", ":all:"], reinstalled, options)
        if sources:
            self._write_build_variables(sources)
            only = [word for package in sources for word in ("--no-binary", package.name)]
            verb = ["install", "--no-deps", "--no-build-isolation", *only]
            verb += ["--config-file", UV_CONFIG_FILE]
            self._call_uv(sources, verb, reinstalled, options)
        for package in editables:
            self._install_editable(package, reinstalled, options)

    def _install_editable(
        self, package: PackageToInstall, reinstalled: Collection[str], options: Iterable[str]
    ) -> None:
        """Install a folder itself; a folder has no hash."""
        constraints = self.folder / BUILD_FILE
        constraints.write_text("".join(f"{line}\n" for line in package.build), encoding="utf-8")
        argv = [self.uv, "pip", "install", "--python", self.python.python, "--no-deps", "--quiet"]
        argv += [*options, "--build-constraints", BUILD_FILE, "--editable", package.editable]
        if package.name in reinstalled:
            argv += ["--reinstall-package", package.name]
        self._run_uv(argv)

    def _write_build_variables(self, sources: Iterable[PackageToInstall]) -> None:
        packages = (*self.request.packages, *self.request.present)
        hashes = sorted(sorted(package.hashes) for package in packages)
        inputs = json.dumps([self.request.python_version, *hashes])
        digest = json.dumps(hashlib.sha256(inputs.encode()).hexdigest())
        lines = [
            "[extra-build-variables]",
            *(
                f"{json.dumps(package.name)} = {{ PROVISION_BUILT_FOR = {digest} }}"
                for package in sources
            ),
        ]
        (self.folder / UV_CONFIG_FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")

    def _call_uv(
        self,
        packages: list[PackageToInstall],
        verb: list[str],
        reinstalled: Collection[str],
        options: Iterable[str],
    ) -> None:
        write_project(self.request, packages, self.folder)
        argv = [self.uv, "pip", *verb, "--python", self.python.python]
        argv += ["--require-hashes", "--quiet", *options]
        for package in packages:
            if package.name in reinstalled:
                argv += ["--reinstall-package", package.name]
        if self.python.managed_marker and self.request.mode is InstallMode.SHARED:
            argv.append("--break-system-packages")
        argv += [PROJECT_FILE] if verb[0] == "sync" else ["--requirements", PROJECT_FILE]
        self._run_uv([*argv, "--constraints", HASHES_FILE])

    def _run_uv(self, argv: list[str]) -> None:
        try:
            answer = self.run(
                argv,
                {**self.environment, **build_request_variables(self.request)},
                self.folder,
            )
        except OSError as error:
            raise InstallError(
                f"cannot start {self.uv}",
                error.strerror or str(error),
                "install uv with `python -m pip install uv`",
            ) from None
        if answer.code:
            raise UvFailed(answer.code, answer.stderr.strip())


@contextmanager
def _moved_aside(records: Iterable[str]) -> Iterator[None]:
    """Move RECORDs aside while uv runs, and restore them if it fails.

    uv removes a package without a RECORD, but not one with an unreadable RECORD. It must not read
    an edited one either, because it would remove the listed files.
    """
    paths = [path for path in records if os.path.exists(path)]
    for path in paths:
        os.replace(path, path + ".damaged")
    try:
        yield
    except BaseException:
        for path in paths:
            os.replace(path + ".damaged", path)
        raise
    for path in paths:
        os.unlink(path + ".damaged")


def _find_flawed(audits: Mapping[str, AuditResult]) -> list[str]:
    return sorted(name for name, audit in audits.items() if audit.flaws)


def _format_flaws(audits: Mapping[str, AuditResult], names: Iterable[str]) -> str:
    return "\n".join(f"{name}: {'; '.join(audits[name].flaws[:3])}" for name in names)


def _describe(package: InstalledPackage | None) -> str:
    if package is None:
        return "not installed"
    return f"found {package.version} in {os.path.dirname(package.metadata_folder)}"
