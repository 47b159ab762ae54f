"""Bringing an interpreter's packages to what is wanted: uv installs, and what it leaves alone or
takes from its cache is looked at.
"""

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
    """How a package came to be there.

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
    """Where one installation happens: what is wanted, the interpreter, the scratch folder, the
    program and its variables.
    """

    wanted: InstallRequest
    python: Interpreter
    folder: Path
    uv: str
    environment: Mapping[str, str]
    run: RunProcess


def install_packages(
    wanted: InstallRequest, uv: str, environment: Mapping[str, str], run: RunProcess, folder: Path
) -> dict[str, Any]:
    """Install what is wanted and return a JSON value: each package with version, provenance and
    number of files compared, and counts.

    `environment` has been scrubbed; with UV_OFFLINE=1 in it, everything comes from uv's cache.
    `folder` is an empty one to write in what uv reads. Raises
    UvFailed, and InstallError for the rest. uv changes nothing before it has every file: after a
    refused one all is as it was.

    What is checked: uv compares the sha256 of each file that it downloads with the locked ones.
    For a wheel in its cache it compares the sha256 that it
    noted when it unpacked it, and trusts what lies unpacked there; a file of an environment may
    be a hard link to that, and an edit of one an edit of
    both. So what was installed is compared with its RECORD afterwards (by `wanted.audit`), and
    installed anew without the cache where that does not fit.
    Nor does uv look at a package that is there in the wanted version: such a package is compared
    with its RECORD likewise, and installed anew when it does
    not fit or is one of `wanted.again`. Who edits a file in uv's cache and its line in the
    RECORD there is not found out.
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
    site = _Installation(wanted, python, folder, uv, environment, run)
    if damaged or len(kept) < len(wanted.pins) or wanted.mode is InstallMode.OWN:
        with _aside(
            os.path.join(kept[name].metadata_folder, "RECORD")
            for name in damaged
            if audited[name].record_is_garbled or name in wanted.reinstall
        ):
            _uv(site, damaged)
    after, audited, notes = _put_right(site, before, audited)
    return _result(wanted, before, after, audited, notes)


def _put_right(
    site: _Installation, before: Mapping[str, InstalledPackage], audited: Mapping[str, AuditResult]
) -> tuple[dict[str, InstalledPackage], dict[str, AuditResult], list[str]]:
    """Look at what uv did, and have it done without the cache where the cache gave damaged files."""  # noqa: E501
    damaged = _flawed(audited)
    after = _wanted_now(site)
    checked = _look(
        site,
        after,
        sorted({*damaged, *(name for name in after if after[name] != before.get(name))}),
    )
    spoiled = _flawed(checked)
    if not spoiled:
        return after, checked, []
    if site.environment.get("UV_OFFLINE", "").lower() not in _OFF:
        what = (
            f"uv's cache holds damaged files of {', '.join(spoiled)}, and the network is "
            "switched off"
        )
        raise InstallError(
            what,
            _told(checked, spoiled),
            f"run `uv cache clean {' '.join(spoiled)}`, and once with network",
        )
    try:
        _uv(site, spoiled, "--no-cache")
    except UvFailed as error:
        raise UvFailed(
            error.code,
            f"uv's cache holds damaged files of {', '.join(spoiled)}, and the index did "
            f"not give them anew:\n{error.output}",
        ) from None
    last = _wanted_now(site)
    checked = _look(
        site, last, sorted({*damaged, *(name for name in last if last[name] != before.get(name))})
    )
    still = _flawed(checked)
    if stuck := [name for name in still if last[name] == before.get(name)]:
        raise InstallError(
            f"cannot put right {', '.join(stuck)}",
            _told(checked, stuck),
            "remove it by the means that installed it",
            1,
        )
    notes = [
        f"{name}: uv's cache held damaged files; `uv cache clean {name}` removes them"
        for name in spoiled
        if name not in still
    ]
    # From a file with the locked hash, and past every cache: then it is the package's own list that
    # is wrong.
    return (
        last,
        checked,
        notes
        + [
            f"{name}: its RECORD does not fit the files of its own wheel: "
            f"{'; '.join(checked[name].flaws[:3])}"
            for name in still
        ],
    )


@contextmanager
def _aside(records: Iterable[str]) -> Iterator[None]:
    """Keep RECORDs out of uv's way: it does not take away a package whose RECORD it cannot read,
    but one without any. They come back when it fails.

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


def _look(
    site: _Installation, there: Mapping[str, InstalledPackage], changed: Sequence[str]
) -> dict[str, AuditResult]:
    """Compare what was changed with its RECORDs, and by size what was not: an installer that takes
    a package away removes what its RECORD lists.
    """
    others = {name: found for name, found in there.items() if name not in changed}
    return {
        **audit_packages(others, hashed=False, among=there.values()),
        **audit_packages(
            {name: there[name] for name in changed},
            hashed=site.wanted.audit is AuditLevel.FULL,
            among=there.values(),
        ),
    }


def _flawed(audited: Mapping[str, AuditResult]) -> list[str]:
    return sorted(name for name, one in audited.items() if one.flaws)


def _told(audited: Mapping[str, AuditResult], names: Iterable[str]) -> str:
    return "\n".join(f"{name}: {'; '.join(audited[name].flaws[:3])}" for name in names)


def _uv(site: _Installation, again: Sequence[str], *more: str) -> None:
    """Have uv install the wheels, and then build and install what is source, by what is there by
    then: torch and build tools are the locked ones.

    uv keeps what it has built by its source alone. So it is told for which files it builds:
    beside another torch it builds again.
    """
    due = site.wanted.pins if site.wanted.mode is InstallMode.OWN else _due(site, again)
    wheels = [pin for pin in due if not pin.from_source]
    built = [pin for pin in due if pin.from_source]
    if wheels or site.wanted.mode is InstallMode.OWN:
        _called(site, wheels, [*_MODES[site.wanted.mode], "--only-binary", ":all:"], again, more)
    if built:
        held = hashlib.sha256(
            json.dumps(
                [site.wanted.python_version, *(sorted(pin.hashes) for pin in site.wanted.pins)]
            ).encode()
        ).hexdigest()
        keys = [
            f"{json.dumps(pin.name)} = {{ PROVISION_BUILT_FOR = {json.dumps(held)} }}"
            for pin in built
        ]
        (site.folder / UV_CONFIG_FILE).write_text(
            "\n".join(["[extra-build-variables]", *keys]) + "\n", encoding="utf-8"
        )
        only = [word for pin in built for word in ("--no-binary", pin.name)]
        _called(
            site,
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


def _due(site: _Installation, again: Sequence[str]) -> list[Pin]:
    """Return what something has to be done about: uv would ask the index of a package about it
    although that is there as wanted.
    """
    there = find_installed_packages(site.python.package_folders)
    return [
        pin
        for pin in site.wanted.pins
        if pin.name in again
        or pin.name not in there
        or not is_same_version(there[pin.name].version, pin.version)
    ]


def _called(
    site: _Installation,
    pins: Sequence[Pin],
    verb: Sequence[str],
    again: Sequence[str],
    more: Sequence[str],
) -> None:
    write_project(site.wanted, pins, site.folder)
    words = [
        site.uv,
        "pip",
        *verb,
        "--python",
        site.python.python,
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
    if site.python.managed_marker and site.wanted.mode is InstallMode.SHARED:
        words.append("--break-system-packages")
    requirements = [PROJECT_FILE] if verb[0] == "sync" else ["--requirements", PROJECT_FILE]
    try:
        answer = site.run(
            [*words, *requirements, "--constraints", HASHES_FILE],
            {**site.environment, **build_request_variables(site.wanted)},
            site.folder,
        )
    except OSError as error:
        raise InstallError(
            f"cannot start {site.uv}",
            error.strerror or str(error),
            "install uv: python -m pip install uv",
        ) from None
    if answer.code:
        raise UvFailed(answer.code, answer.stderr.strip())


_MODES = {InstallMode.OWN: ("sync",), InstallMode.SHARED: ("install", "--no-deps")}


def _wanted_now(site: _Installation) -> dict[str, InstalledPackage]:
    """Return the wanted packages as they are there now; raises InstallError where one is not there
    in its version.
    """
    there = find_installed_packages(site.python.package_folders)
    wrong = [
        pin
        for pin in site.wanted.pins
        if pin.name not in there or not is_same_version(there[pin.name].version, pin.version)
    ]
    if wrong:
        told = [f"{pin.name} {pin.version}: {_instead(there.get(pin.name))}" for pin in wrong[:5]]
        raise InstallError(
            f"{len(wrong)} packages are not as wanted although uv said so",
            "\n".join(told),
            "another copy of it comes first on sys.path?",
            1,
        )
    return {pin.name: there[pin.name] for pin in site.wanted.pins}


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
