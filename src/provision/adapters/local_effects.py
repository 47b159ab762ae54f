"""Performs the effects on this machine."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import tempfile
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, assert_never

from provision.adapters import files
from provision.adapters.process import stream
from provision.adapters.unpacked_code import remove_code
from provision.agent.core.code_files import unpack_code
from provision.effects import local
from provision.effects.code import RemoveCode, UnpackCode
from provision.effects.conda import CreateCondaPrefix
from provision.effects.packages import SourceDistribution
from provision.effects.system import Notice
from provision.errors import ExternalError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from provision.adapters.uv.toolchain import UvToolchain
    from provision.effects.system import ProgressCallback

INSTALL_RECORD = "installed.json"
"""The file in an environment with the provenance of its packages (provision.agent.install)."""
_VERDICTS = (0, 1, 3)
_RECREATE_HINT = "recreate the environment: run `provision destroy`, then `provision apply`"


class LocalContext(NamedTuple):
    """The caller's variables, uv (set up on first use), the time, and `--offline`."""

    environment: Mapping[str, str]
    uv: Callable[[], UvToolchain]
    now: str
    offline: bool


def perform(effect: local.LocalEffect, context: LocalContext, progress: ProgressCallback) -> None:
    """Perform one effect; raises ExternalError."""
    match effect:
        case local.InstallPython():
            from provision.adapters.uv.toolchain import install_python

            install_python(effect, context.uv().environment(), progress)
        case local.CreateVenv():
            context.uv().create_venv(effect)
        case local.InstallPackages():
            _install_packages(effect, context, progress)
        case local.RunProbe():
            run_probe(effect, context.environment, progress)
        case CreateCondaPrefix(path=path, program=program):
            from provision.adapters.conda.prefixes import create_prefix

            progress(f"creating {path.name} with {program.name} ({program.reason})")
            create_prefix(
                effect, context.environment, context.now, progress, offline=context.offline
            )
        case local.WriteFile(path, content, mode):
            files.write(path, content, mode)
        case local.DownloadFile(path, file, origin):
            from provision.adapters.uv.download import download_file

            source = SourceDistribution(file.name, file.url, file.sha256)
            download_file(source, origin, context.uv().environment(), path)
        case local.MakeFolder(path, mode):
            files.make_folder(path, mode)
        case local.MoveFile(path, destination):
            files.move(path, destination)
        case local.RemoveTree(path, in_background):
            files.remove_tree(path, in_background=in_background)
        case local.RemoveFileIfUnmodified(path, sha256):
            if not files.remove_if_unmodified(path, sha256):
                progress(Notice(f"{path} has changed since provision wrote it, so it is kept"))
        case local.ReplaceSymlink(path, target):
            files.set_symlink(path, target)
        case local.CreateSymlink(path, target, replaced_target):
            files.create_symlink(path, target, replaced_target)
        case local.RemoveSymlink(path, target, only_if_dangling):
            if not files.remove_symlink(path, target, dead=only_if_dangling):
                target = "to a different place, or to an environment that still exists"
                progress(Notice(f"{path} points {target}, so it is kept"))
        case UnpackCode(archive, digest, path):
            with files.wrap_os_errors("write", path):
                unpack_code(archive, digest, path)
        case RemoveCode(path):
            with files.wrap_os_errors("remove", path):
                kept = remove_code(path)
            if kept:
                progress(Notice(f"{path} is kept, because it has files that are not of the code"))
        case _:
            assert_never(effect)


def _install_packages(
    effect: local.InstallPackages, context: LocalContext, progress: ProgressCallback
) -> None:
    uv, copied = context.uv(), dict[str, dict[str, Any]]()
    if effect.sources:
        from provision.adapters.uv.package_builds import with_built_packages

        effect = with_built_packages(effect, uv, context.environment, progress)
    from provision.adapters import environment_copy

    if effect.earlier is not None:
        copied = environment_copy.copy_packages(
            effect.earlier,
            effect.earlier / INSTALL_RECORD,
            effect.environment,
            effect.minor,
            effect.pins,
        )
    result = uv.install_packages(effect, copied.keys(), progress)
    if copied:
        result = environment_copy.with_copied_packages(result, copied)
    result = environment_copy.with_locked_hashes(result, effect.pins)
    if effect.shared:
        from provision.adapters.conda.prefixes import with_conda_packages

        result = with_conda_packages(result, effect.environment, effect.minor)
    text = json.dumps(result, indent=1, sort_keys=True) + "\n"
    files.write(effect.environment / INSTALL_RECORD, text, 0o644)
    for note in result["notes"]:
        progress(Notice(note))


def run_probe(
    effect: local.RunProbe, environment: Mapping[str, str], progress: ProgressCallback
) -> None:
    """Run the probe and report its progress. May block for minutes.

    Raises:
        ExternalError: it cannot be started, was killed, or ended without a verdict.
    """
    argv = [str(effect.python), str(_unpack_zipapp(effect.zipapp)), "verify", "--events"]
    argv += ["--expectations", str(effect.expectations), "--out", str(effect.report)]
    for check in effect.selected_checks:
        argv += ["--only", check]
    # Bytecode is written: without it every import of the stack costs seconds, at each verification
    # and each run of the user's own program.
    dropped = ("PYTHONDONTWRITEBYTECODE", "PYTHONHOME")
    variables = {key: value for key, value in environment.items() if key not in dropped}
    variables |= effect.environment
    try:
        result = stream(argv, variables, progress, timeout_s=effect.timeout_s + 60)
    except OSError as error:
        why = f"{effect.python}: {os.strerror(error.errno or 0)}"
        what = "the environment's Python cannot be started"
        raise ExternalError(what, why=why, hint=_RECREATE_HINT) from None
    if result.code < 0:
        raise _killed_error(-result.code)
    output = result.stdout[-2000:]
    why, hint = (
        f"exit code {result.code}",
        "run `provision verify` again; if it fails again, report this as a bug",
    )
    if result.code in _VERDICTS:
        if effect.report.exists():
            return
        why = (
            f"the environment's Python ended with exit code {result.code}, and the probe did "
            "not write a report"
        )
        hint = (
            f"unset variables that can break Python (PYTHONPATH, LD_PRELOAD), or {_RECREATE_HINT}"
        )
    why = f"{why}\n{output}".strip()
    raise ExternalError("the verification ended without a verdict", why=why, hint=hint)


def _unpack_zipapp(zipapp: Path) -> Path:
    """Return a folder with the files of the probe's zip, where Python can cache bytecode."""
    digest = hashlib.sha256(zipapp.read_bytes()).hexdigest()
    folder = zipapp.with_name(f"{zipapp.stem}-{digest[:12]}")
    if folder.is_symlink() or not folder.is_dir():
        for old in zipapp.parent.glob(f"{zipapp.stem}-*"):
            files.remove_tree(old)
        with (
            files.wrap_os_errors("write", folder),
            tempfile.TemporaryDirectory(
                prefix=f"{zipapp.stem}-", dir=zipapp.parent, ignore_cleanup_errors=True
            ) as made,
        ):
            with zipfile.ZipFile(zipapp) as archive:
                archive.extractall(Path(made, "files"))
            Path(made, "files").rename(folder)
    return folder


def _killed_error(number: int) -> ExternalError:
    name = f"signal {number}"
    with suppress(ValueError):
        name = signal.Signals(number).name
    why = f"{name} ended the probe"
    hint = f"run `provision verify` again; if it fails again, {_RECREATE_HINT}"
    if number == signal.SIGKILL:
        why += ": the system sends this signal when memory runs out, or another program sent it"
        hint = (
            "free memory (`dmesg` shows what the kernel killed, if you have permission to read "
            "it), then run `provision verify` again"
        )
    return ExternalError("the verification was killed", why=why, hint=hint)
