"""Installs packages with uv, and audits what uv keeps or takes from its cache."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from ..core.installed_packages import (
    AuditResult,
    InstalledPackage,
    audit_packages,
    find_installed_packages,
)
from ..core.record_audit import make_install_note, read_record
from ..core.versions import is_same_version
from .document import AuditLevel, InstallError, InstallMode, InstallRequest, Pin
from .interpreter import Interpreter, RunProcess, inspect_interpreter
from .scratch_project import (
    HASHES_FILE,
    PROJECT_FILE,
    UV_CONFIG_FILE,
    build_request_variables,
    write_project,
)

SCHEMA = "provision.installed/1"
_OFF = ("", "0", "false", "f", "no", "n", "off")


class Provenance(str, Enum):
    """Provenance of an installed package.

    hash-checked: this run installed it, from a file whose sha256 is locked. preinstalled: that
    version was there before, and its files are those that its
    RECORD lists. reinstalled: it was there in another version, or damaged, and this run put it
    right from a file whose sha256 is locked.
    """

    HASH_CHECKED = "hash-checked"
    PREINSTALLED = "preinstalled"
    REINSTALLED = "reinstalled"


class UvFailed(Exception):
    """Uv ended with an error: its exit code and its words."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(f"uv failed (exit code {code})")
        self.code, self.output = code, said


@dataclass(frozen=True, slots=True)
class _Installation:
    """One installation: request, interpreter, scratch folder, uv and its variables."""

    wanted: InstallRequest
    python: Interpreter
    folder: Path
    uv: str
    environment: Mapping[str, str]
    run: RunProcess


def install_packages(
    wanted: InstallRequest, uv: str, environment: Mapping[str, str], run: RunProcess, folder: Path
) -> dict[str, Any]:
    """Install the requested packages; return a JSON value with each one's version and provenance.

    `environment` has been scrubbed; with UV_OFFLINE=1 in it, everything comes from uv's cache.
    `folder` is an empty one to write in what uv reads. Raises UvFailed, and InstallError for
    the rest. uv changes nothing before it has every file: after a refused one all is as it was.

    What is checked: uv compares the sha256 of each file that it downloads with the locked ones.
    For a wheel in its cache it compares the sha256 that it noted when it unpacked it, and
    trusts what lies unpacked there; a file of an environment may be a hard link to that, and an
    edit of one an edit of both. So what was installed is compared with its RECORD afterwards
    (by `wanted.audit`), and installed anew without the cache where that does not fit. Nor does
    uv look at a package that is there in the wanted version: such a package is compared with
    its RECORD likewise, and installed anew when it does not fit or is one of `wanted.again`.
    Who edits a file in uv's cache and its line in the RECORD there is not found out.
    """
    python = inspect_interpreter(wanted.python, environment, run)
    if python.minor != wanted.python_version:
        raise InstallError(
            f"{wanted.python} is Python {python.minor}",
            f"the packages were locked for Python {wanted.python_version}",
            "name another interpreter",
            1,
        )
    before = find_installed_packages(python.package_folders)
    kept = {
        pin.name: before[pin.name]
        for pin in wanted.pins
        if pin.name in before and is_same_version(before[pin.name].version, pin.version)
    }
    audited = audit_packages(kept, hashed=wanted.audit is AuditLevel.FULL, among=before.values())
    damaged = sorted({*_flawed(audited), *(kept.keys() & wanted.reinstall)})
    installation = _Installation(wanted, python, folder, uv, environment, run)
    if damaged or len(kept) < len(wanted.pins) or wanted.mode is InstallMode.OWN:
        with _aside(
            os.path.join(kept[name].metadata_folder, "RECORD")
            for name in damaged
            if audited[name].record_is_garbled or name in wanted.reinstall
        ):
            _uv(installation, damaged)
    after, audited, notes = _repair_installed(installation, before, audited)
    return _result(wanted, before, after, audited, notes)


def _repair_installed(
    installation: _Installation,
    before: Mapping[str, InstalledPackage],
    audited: Mapping[str, AuditResult],
) -> tuple[dict[str, InstalledPackage], dict[str, AuditResult], list[str]]:
    """Audit what uv installed, and reinstall without its cache what that had damaged."""
    damaged = _flawed(audited)
    after, checked = _audit_installed(installation, before, damaged)
    spoiled = _flawed(checked)
    if not spoiled:
        return after, checked, []
    names = ", ".join(spoiled)
    if installation.environment.get("UV_OFFLINE", "").lower() not in _OFF:
        raise InstallError(
            f"uv's cache holds damaged files of {names}, and the network is switched off",
            _format_flaws(checked, spoiled),
            f"run `uv cache clean {' '.join(spoiled)}`, and once with network",
        )
    try:
        _uv(installation, spoiled, "--no-cache")
    except UvFailed as error:
        raise UvFailed(
            error.code,
            f"uv's cache holds damaged files of {names}, and the index did not give them anew:\n"
            f"{error.output}",
        ) from None
    after, checked = _audit_installed(installation, before, damaged)
    still = _flawed(checked)
    if stuck := [name for name in still if after[name] == before.get(name)]:
        raise InstallError(
            f"cannot put right {', '.join(stuck)}",
            _format_flaws(checked, stuck),
            "remove it by the means that installed it",
            1,
        )
    notes = [
        f"{name}: uv's cache held damaged files; `uv cache clean {name}` removes them"
        for name in spoiled
        if name not in still
    ]
    # Installed from a file with the locked hash and past every cache: the package's own list is
    # wrong.
    notes += [
        f"{name}: its RECORD does not fit the files of its own wheel: "
        f"{'; '.join(checked[name].flaws[:3])}"
        for name in still
    ]
    return after, checked, notes


def _audit_installed(
    installation: _Installation, before: Mapping[str, InstalledPackage], damaged: Sequence[str]
) -> tuple[dict[str, InstalledPackage], dict[str, AuditResult]]:
    """Return the requested packages, and their audits: in full of all that changed."""
    after = _wanted_now(installation)
    changed = {name for name, package in after.items() if package != before.get(name)}
    return after, _audit_changed(installation, after, sorted({*damaged, *changed}))


@contextmanager
def _aside(records: Iterable[str]) -> Iterator[None]:
    """Move RECORDs aside while uv works; they come back if it fails.

    uv does not remove a package whose RECORD it cannot read, but one without a RECORD.

    Nor has it to read one that was edited: it would remove what that lists.
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


def _audit_changed(
    installation: _Installation, there: Mapping[str, InstalledPackage], changed: Sequence[str]
) -> dict[str, AuditResult]:
    """Audit changed packages in full, the others by size.

    An installer that removes a package removes whatever its RECORD lists.
    """
    others = {name: found for name, found in there.items() if name not in changed}
    return {
        **audit_packages(others, hashed=False, among=there.values()),
        **audit_packages(
            {name: there[name] for name in changed},
            hashed=installation.wanted.audit is AuditLevel.FULL,
            among=there.values(),
        ),
    }


def _flawed(audited: Mapping[str, AuditResult]) -> list[str]:
    return sorted(name for name, one in audited.items() if one.flaws)


def _format_flaws(audited: Mapping[str, AuditResult], names: Iterable[str]) -> str:
    return "\n".join(f"{name}: {'; '.join(audited[name].flaws[:3])}" for name in names)


def _uv(installation: _Installation, again: Sequence[str], *more: str) -> None:
    """Install the wheels, then build and install source packages with the locked torch and tools.

    uv keeps what it has built by its source alone. So it is told for which files it builds:
    beside another torch it builds again.
    """
    due = (
        installation.wanted.pins
        if installation.wanted.mode is InstallMode.OWN
        else _due(installation, again)
    )
    wheels = [pin for pin in due if not pin.from_source]
    built = [pin for pin in due if pin.from_source]
    if wheels or installation.wanted.mode is InstallMode.OWN:
        _called(
            installation,
            wheels,
            [*_MODES[installation.wanted.mode], "--only-binary", ":all:"],
            again,
            more,
        )
    if built:
        held = hashlib.sha256(
            json.dumps(
                [
                    installation.wanted.python_version,
                    *(sorted(pin.hashes) for pin in installation.wanted.pins),
                ]
            ).encode()
        ).hexdigest()
        keys = [
            f"{json.dumps(pin.name)} = {{ PROVISION_BUILT_FOR = {json.dumps(held)} }}"
            for pin in built
        ]
        (installation.folder / UV_CONFIG_FILE).write_text(
            "\n".join(["[extra-build-variables]", *keys]) + "\n", encoding="utf-8"
        )
        only = [word for pin in built for word in ("--no-binary", pin.name)]
        _called(
            installation,
            built,
            [
                "install",
                "--no-deps",
                "--no-build-isolation",
                *only,
                "--config-file",
                UV_CONFIG_FILE,
            ],
            again,
            more,
        )


def _due(installation: _Installation, again: Sequence[str]) -> list[Pin]:
    """Return the packages to install; uv would query the index about the others too."""
    installed = find_installed_packages(installation.python.package_folders)
    return [
        pin
        for pin in installation.wanted.pins
        if pin.name in again
        or pin.name not in installed
        or not is_same_version(installed[pin.name].version, pin.version)
    ]


def _called(
    installation: _Installation,
    pins: Sequence[Pin],
    verb: Sequence[str],
    again: Sequence[str],
    more: Sequence[str],
) -> None:
    write_project(installation.wanted, pins, installation.folder)
    words = [
        installation.uv,
        "pip",
        *verb,
        "--python",
        installation.python.python,
        "--require-hashes",
        "--quiet",
        *more,
    ]
    words += [
        part
        for name in again
        if name in {pin.name for pin in pins}
        for part in ("--reinstall-package", name)
    ]
    if installation.python.managed_marker and installation.wanted.mode is InstallMode.SHARED:
        words.append("--break-system-packages")
    requirements = [PROJECT_FILE] if verb[0] == "sync" else ["--requirements", PROJECT_FILE]
    try:
        answer = installation.run(
            [*words, *requirements, "--constraints", HASHES_FILE],
            {**installation.environment, **build_request_variables(installation.wanted)},
            installation.folder,
        )
    except OSError as error:
        raise InstallError(
            f"cannot start {installation.uv}",
            error.strerror or str(error),
            "install uv: python -m pip install uv",
        ) from None
    if answer.code:
        raise UvFailed(answer.code, answer.stderr.strip())


_MODES = {InstallMode.OWN: ("sync",), InstallMode.SHARED: ("install", "--no-deps")}


def _wanted_now(installation: _Installation) -> dict[str, InstalledPackage]:
    """Return the requested packages as installed now. Raises InstallError if a version differs."""
    installed = find_installed_packages(installation.python.package_folders)
    wrong = [
        pin
        for pin in installation.wanted.pins
        if pin.name not in installed
        or not is_same_version(installed[pin.name].version, pin.version)
    ]
    if wrong:
        told = [
            f"{pin.name} {pin.version}: {_instead(installed.get(pin.name))}" for pin in wrong[:5]
        ]
        raise InstallError(
            f"{len(wrong)} packages are not as wanted although uv said so",
            "\n".join(told),
            "another copy of it comes first on sys.path?",
            1,
        )
    return {pin.name: installed[pin.name] for pin in installation.wanted.pins}


def _instead(found: InstalledPackage | None) -> str:
    return (
        f"{found.version} is used, in {os.path.dirname(found.metadata_folder)}"
        if found
        else "not there"
    )


def _result(
    wanted: InstallRequest,
    before: Mapping[str, InstalledPackage],
    after: Mapping[str, InstalledPackage],
    audited: Mapping[str, AuditResult],
    notes: list[str],
) -> dict[str, Any]:
    packages = {
        name: {
            "version": found.version,
            "provenance": _provenance(before.get(name), found).value,
            "files_checked": audited[name].files,
            **({"record_fits": False} if audited[name].flaws else {}),
            **make_install_note(read_record(found.metadata_folder)).to_json(),
        }
        for name, found in sorted(after.items())
    }
    counts = {
        kind.value: sum(one["provenance"] == kind.value for one in packages.values())
        for kind in Provenance
    }
    return {
        "schema": SCHEMA,
        "mode": wanted.mode.value,
        "audit": wanted.audit.value,
        "counts": counts,
        "packages": packages,
        "notes": notes,
    }


def _provenance(before: InstalledPackage | None, after: InstalledPackage) -> Provenance:
    if before == after:
        return Provenance.PREINSTALLED
    return Provenance.HASH_CHECKED if before is None else Provenance.REINSTALLED
