"""Performs the effects on this machine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, assert_never

from provision.adapters import files
from provision.effects import local
from provision.effects.conda import CreateCondaPrefix

if TYPE_CHECKING:
    from provision.adapters.system import RealSystem
    from provision.effects.system import ProgressCallback

INSTALL_RECORD = "installed.json"
"""The file in an environment with the provenance of its packages (provision.agent.install)."""


def perform(effect: local.LocalEffect, system: RealSystem, progress: ProgressCallback) -> None:
    """Perform one effect; raises ExternalError."""
    match effect:
        case (
            local.InstallPython()
            | local.CreateVenv()
            | local.InstallPackages()
            | local.RunProbe()
            | CreateCondaPrefix()
        ):
            _perform_on_environment(effect, system, progress)
        case local.WriteFile(path, content, mode):
            files.write(path, content, mode)
        case local.MakeFolder(path, mode):
            files.make_folder(path, mode)
        case local.MoveFile(path, destination):
            files.move(path, destination)
        case local.RemoveTree(path):
            files.remove_tree(path)
        case local.RemoveFileIfUnmodified(path, sha256):
            if not files.remove_if_unmodified(path, sha256):
                progress(f"{path} was changed since it was written: it stays")
        case local.ReplaceSymlink(path, target):
            files.set_symlink(path, target)
        case local.CreateSymlink(path, target, replaced_target):
            files.create_symlink(path, target, replaced_target)
        case local.RemoveSymlink(path, target, only_if_dangling):
            if not files.remove_symlink(path, target, dead=only_if_dangling):
                where = "elsewhere, or to an environment that is still there"
                progress(f"{path} leads {where}: it stays")
        case _:
            assert_never(effect)


def _perform_on_environment(
    effect: local.InstallPython
    | local.CreateVenv
    | local.InstallPackages
    | local.RunProbe
    | CreateCondaPrefix,
    system: RealSystem,
    progress: ProgressCallback,
) -> None:
    match effect:
        case local.InstallPython():
            from provision.adapters.uv.pythons import install_python

            install_python(effect, system.uv.environment())
        case local.CreateVenv():
            from provision.adapters.uv.pythons import create_venv

            create_venv(effect, system.uv.interpreter_path(effect.minor), system.uv.environment())
        case local.InstallPackages():
            _install_packages(effect, system, progress)
        case local.RunProbe():
            from provision.adapters.probe_runner import run_probe

            run_probe(effect, system.environment(), progress)
        case CreateCondaPrefix(path=path, program=program):
            from provision.adapters.conda.prefixes import create_prefix

            progress(f"making {path.name} with {program.name}: {program.reason}")
            create_prefix(effect, system.environment(), system.now(), offline=system.offline)


def _install_packages(
    effect: local.InstallPackages, system: RealSystem, progress: ProgressCallback
) -> None:
    from provision.adapters.uv.installation import install_packages

    sources = system.uv.package_sources(effect.indexes, effect.minor)
    result = install_packages(effect, sources, system.uv.environment())
    if effect.shared:
        from provision.adapters.conda.prefixes import with_conda_packages

        result = with_conda_packages(result, effect.environment, effect.minor)
    text = json.dumps(result, indent=1, sort_keys=True) + "\n"
    files.write(effect.environment / INSTALL_RECORD, text, 0o644)
    for note in result["notes"]:
        progress(note)
