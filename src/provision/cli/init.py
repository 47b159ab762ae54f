"""`provision init`: writes a starter spec, and the schema of specs for editors."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from provision.cli.app import DEFAULT_SPEC, FILE, OUTPUT_FORMAT, completed_by, examples


@click.command(
    epilog=examples(
        "provision init",
        "provision init specs/mine.yaml",
        "provision init --gpu L4 --target colab --target workbench",
        "provision init --from requirements.txt",
    )
)
@click.argument("path", type=FILE, default=Path(DEFAULT_SPEC))
@click.option(
    "--from",
    "files",
    multiple=True,
    type=FILE,
    metavar="FILE",
    help="Take packages and settings from this file (see `provision import`); repeatable.",
)
@click.option(
    "--gpu",
    metavar="GPU",
    shell_complete=completed_by("gpus"),
    help="GPU to declare, such as L4 or A100-80GB:2, or none for no GPU; default: the GPU that "
    "the files declare, otherwise none.",
)
@click.option(
    "--target",
    "-t",
    "kinds",
    multiple=True,
    metavar="KIND",
    shell_complete=completed_by("kinds"),
    help="Add a target of this kind, such as local, colab or workbench; repeatable.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@OUTPUT_FORMAT
def init(
    path: Path,
    *,
    files: tuple[Path, ...],
    gpu: str | None,
    kinds: tuple[str, ...],
    force: bool,
    output_format: str,
) -> int:
    """Write a starter spec with comments."""
    from provision.adapters import RealSystem
    from provision.cli import console
    from provision.commands import init as command

    system = RealSystem()
    if files:
        from provision.cli.import_files import print_import

        result = command.init_from(
            path, files, system, console.print_note, force=force, gpu=gpu, kinds=kinds
        )
        return print_import(result, path, output_format)
    others = command.find_importable_files(path, system)
    placeholders = command.init(path, system, console.print_note, force=force, gpu=gpu, kinds=kinds)
    if output_format == "json":
        document = {"version": 1, "wrote": str(path), "placeholders": list(placeholders)}
        console.print_json(document, indent=None)
        return 0
    quoted = shlex.quote(str(path))
    following = f"provision lint {quoted}, then provision apply {quoted}"
    if placeholders:
        following = f"set {', '.join(placeholders)}; then {following}"
    console.print_text(f"wrote {path}, and {command.SCHEMA_NAME} for editors\nnext: {following}")
    if others:
        named = " ".join(f"--from {shlex.quote(name)}" for name in others)
        console.print_note(
            f"to take the packages from the files in this folder: provision init {quoted} "
            f"--force {named}"
        )
    return 0
