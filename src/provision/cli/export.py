"""`provision export`: a lock, or its launch configuration, in the format of another tool."""

from __future__ import annotations

from pathlib import Path

import click

from provision.cli.app import OFFLINE, OUT, OUTPUT_FORMAT, SPEC, examples, target_option

FORMATS = (
    "pylock",
    "requirements",
    "cyclonedx",
    "pyproject",
    "environment.yml",
    "conda-explicit",
    "accelerate",
    "deepspeed",
    "launch",
)


@click.command(
    epilog=examples(
        "provision export --format requirements > requirements.txt",
        "provision export --format pylock --target local --out pylock.toml",
    )
)
@SPEC
@click.option(
    "--format",
    "export_format",
    type=click.Choice(FORMATS),
    metavar="FORMAT",
    required=True,
    help=f"Export to one of these formats: {', '.join(FORMATS)}.",
)
@target_option("Select the target to export.")
@OUT
@click.option(
    "--force", is_flag=True, help="Overwrite the file even if `provision export` did not write it."
)
@OFFLINE
@OUTPUT_FORMAT
def export(
    spec: Path,
    *,
    export_format: str,
    target: str | None,
    out: Path | None,
    force: bool,
    offline: bool,
    output_format: str,
) -> int:
    """Export the lock, or its launch configuration, in the format of another tool."""
    from provision.adapters import RealSystem
    from provision.cli import console
    from provision.cli.progress import show_progress
    from provision.commands import export as command
    from provision.commands.shared.load import load_spec
    from provision.effects.local import WriteFile

    system = RealSystem(offline=offline)
    chosen = command.ExportFormat(export_format)
    if out is not None:
        command.check_output_path(out, chosen, system, force=force)
    loaded = load_spec(spec, system)
    folder = (loaded.path if out is None else out).absolute().parent
    with show_progress() as progress:
        exported = command.export(loaded, chosen, target, folder, system, progress)
        if out is not None:
            system.perform(WriteFile(out, exported.text), progress)
    if exported.unconfirmed:
        console.print_note(
            "warning: no index has confirmed the hashes in the lock for "
            f"{', '.join(exported.unconfirmed)}"
        )
    if output_format == "json":
        console.print_document(
            format=export_format,
            lock=str(loaded.lock_path),
            digest=exported.digest,
            targets=exported.targets,
            out=str(out) if out else None,
            text=exported.text,
        )
    elif out is not None:
        targets = ", ".join(exported.targets)
        console.print_text(
            f"wrote {out}: {export_format} from {loaded.lock_path}, target {targets}"
        )
    else:
        console.print_result(exported.text)
    return 0
