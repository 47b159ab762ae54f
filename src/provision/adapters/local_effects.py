"""Performs the effects on this machine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple, assert_never

from provision.adapters import files
from provision.effects import local
from provision.effects.conda import CreateCondaPrefix

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from provision.adapters.uv.toolchain import UvToolchain
    from provision.effects.system import ProgressCallback

INSTALL_RECORD = "installed.json"
"""The file in an environment with the provenance of its packages (provision.agent.install)."""


class LocalContext(NamedTuple):
    """The caller's variables, uv (set up on first use), the time, and `--offline`."""

    environment: Mapping[str, str]
    uv: Callable[[], UvToolchain]
    now: str
    offline: bool


def perform(effect: local.LocalEffect, context: LocalContext, progress: ProgressCallback) -> None:
    """Perform one effect; raises ExternalError."""
    match effect:
        case (
            local.InstallPython()
            | local.CreateVenv()
            | local.InstallPackages()
            | local.RunProbe()
            | CreateCondaPrefix()
        ):
            _perform_on_environment(effect, context, progress)
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
    context: LocalContext,
    progress: ProgressCallback,
) -> None:
    match effect:
        case local.InstallPython():
            from provision.adapters.uv.pythons import install_python

            install_python(effect, context.uv().environment())
        case local.CreateVenv():
            from provision.adapters.uv.pythons import create_venv

            uv = context.uv()
            create_venv(effect, uv.interpreter_path(effect.minor), uv.environment())
        case local.InstallPackages():
            _install_packages(effect, context, progress)
        case local.RunProbe():
            from provision.adapters.probe_runner import run_probe

            run_probe(effect, context.environment, progress)
        case CreateCondaPrefix(path=path, program=program):
            from provision.adapters.conda.prefixes import create_prefix

            progress(f"making {path.name} with {program.name}: {program.reason}")
            create_prefix(effect, context.environment, context.now, offline=context.offline)


def _install_packages(
    effect: local.InstallPackages, context: LocalContext, progress: ProgressCallback
) -> None:
    from provision.adapters.uv.installation import install_packages

    uv = context.uv()
    sources = uv.package_sources(effect.indexes, effect.minor)
    result = install_packages(effect, sources, uv.environment())
    if effect.shared:
        from provision.adapters.conda.prefixes import with_conda_packages

        result = with_conda_packages(result, effect.environment, effect.minor)
    text = json.dumps(result, indent=1, sort_keys=True) + "\n"
    files.write(effect.environment / INSTALL_RECORD, text, 0o644)
    for note in result["notes"]:
        progress(note)
