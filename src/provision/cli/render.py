"""`provision render`: writes the files of notebook targets."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from provision.cli.app import (
    FILE,
    LOCK_TIMEOUT,
    OUTPUT_FORMAT,
    TARGETS,
    examples,
    spec_or_default,
)
from provision.errors import UsageError

if TYPE_CHECKING:
    from provision.commands.render import RenderedTarget, RenderOptions
    from provision.commands.shared.load import LoadedSpec

_PENDING_REASON = "the notebook verifies the environment when it runs"


@click.command(
    epilog=examples(
        "provision render specs/hf-trainer.yaml",
        "provision render specs/hf-trainer.yaml --check   # in CI",
    )
)
@click.argument("specs", metavar="[SPEC]", type=FILE, nargs=-1)
@TARGETS
@click.option(
    "--check",
    is_flag=True,
    help="Check that the files match the spec and the lock; write nothing. Exit 1 if they do not.",
)
@click.option(
    "--if-rendered",
    is_flag=True,
    help="With --check, accept any number of specs, and skip those without a rendered notebook.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Write the files to FOLDER instead of next to the spec.",
)
@click.option(
    "--payload-url",
    default="",
    metavar="URL",
    help="Write the payload to NAME.payload; the cell downloads it from URL.",
)
@LOCK_TIMEOUT
@OUTPUT_FORMAT
def render(
    specs: tuple[Path, ...],
    targets: tuple[str, ...],
    *,
    check: bool,
    if_rendered: bool,
    out: Path | None,
    payload_url: str,
    lock_timeout: float,
    output_format: str,
) -> int:
    """Write the notebook and the cell for Colab targets."""
    from provision.commands import render as command

    specs = specs or (spec_or_default(None),)
    if if_rendered and (not check or targets or out or payload_url):
        hint = "for example: provision render --check --if-rendered specs/*.yaml"
        raise UsageError(
            "--if-rendered requires --check, and cannot be combined with other options", hint=hint
        )
    if len(specs) > 1 and (not if_rendered or output_format != "text"):
        hint = "several specs are accepted only with --check --if-rendered and text output"
        raise UsageError("render accepts only one spec", hint=hint)
    options = command.RenderOptions(check, out, payload_url, lock_timeout)
    codes = [
        _render_spec(spec, targets, options, output_format, if_rendered=if_rendered)
        for spec in specs
    ]
    return max(codes)


def _render_spec(
    spec: Path,
    targets: tuple[str, ...],
    options: RenderOptions,
    output_format: str,
    *,
    if_rendered: bool,
) -> int:
    from provision.adapters import RealSystem
    from provision.cli import console
    from provision.commands import render as command
    from provision.commands.shared.load import load_spec

    system = RealSystem()
    check, out, payload_url = options.check, options.out, options.payload_url
    loaded = load_spec(spec, system)
    if if_rendered and not command.is_rendered(loaded, system):
        console.print_note(f"skipped {spec}: no notebook was rendered")
        return 0
    console.print_known_findings(loaded.diagnostics, loaded)
    rendered = command.render(loaded, targets, options, system, console.print_note)
    differ = check and any(target.differing for target in rendered)
    if output_format == "json":
        console.print_document(
            check=check, holds=not differ, targets=[_document(target) for target in rendered]
        )
    elif check:
        arguments = [str(spec)]
        for name in targets:
            arguments += ["--target", name]
        if out is not None:
            arguments += ["--out", str(out)]
        if payload_url:
            arguments += ["--payload-url", payload_url]
        _print_check(rendered, f"provision render {shlex.join(arguments)}")
    else:
        for target in rendered:
            _print_rendered(loaded, target)
    return 1 if differ else 0


def _document(target: RenderedTarget) -> dict[str, Any]:
    rendering = target.rendering
    return {
        "target": target.context.target,
        "files": [os.path.relpath(target.folder / name) for name in rendering.file_names],
        "differing": target.differing,
        "nonce": rendering.content.nonce,
        "lock": target.context.lock.digest,
        "payload_sha256": rendering.content.sha256,
        "cell_bytes": len(rendering.content.cell),
        "link": rendering.link,
        "copies": rendering.edited_copies,
    }


def _print_check(rendered: tuple[RenderedTarget, ...], write: str) -> None:
    """Write which files do not match the spec and the lock, and the command that updates them."""
    from provision.cli.console import print_text
    from provision.sanitize import escape_line

    for target in rendered:
        inputs = ["the spec", "the lock", *(["the code"] if target.context.code else [])]
        inputs += [f"the files of {source.name}" for source in target.context.sources]
        for name in target.rendering.file_names:
            file = escape_line(os.path.relpath(target.folder / name))
            verb = "does not match" if name in target.differing else "matches"
            print_text(f"{file} {verb} {', '.join(inputs[:-1])} and {inputs[-1]}")
    if differing := sum(len(target.differing) for target in rendered):
        print_text(f"update {'it' if differing == 1 else 'them'} with: {write}")


def _print_rendered(loaded: LoadedSpec, target: RenderedTarget) -> None:
    from provision.cli.console import print_text
    from provision.cli.notebook_output import print_pending_notebook
    from provision.sanitize import escape_line
    from provision.targets.capabilities import describe_edited_copy

    rendering, content, context = target.rendering, target.rendering.content, target.context
    files = {
        name: escape_line(os.path.relpath(target.folder / name)) for name in rendering.file_names
    }
    for name, file in files.items():
        if name in target.differing:
            print_text(f"wrote {file}")
        else:
            print_text(f"{file} is up to date")
    for cell in rendering.edited_copies:
        print_text(f"{files[content.notebook_name]}: {describe_edited_copy(cell)}")
    if content.github_addresses:
        print_text(
            f"commit and push {files[content.payload_name]}: the cell downloads it from "
            f"{escape_line(content.url)} (sha256 {content.sha256})"
        )
    elif content.url:
        print_text(
            f"upload {files[content.payload_name]} to {escape_line(content.url)}, from where "
            f"the cell downloads it (sha256 {content.sha256})"
        )
    if content.payload_object:
        print_text(
            f"`{context.command('apply')}` uploads the payload to {content.payload_object}, from "
            f"where the cell downloads it (sha256 {content.sha256})"
        )
    if target.folder == context.folder.parent:
        file = content.notebook_name
        places = content.report_places
        print_pending_notebook(loaded, context, file, _PENDING_REASON, rendering.link, places)
        return
    print_text(
        "\n"
        f"{context.address}: rendered, not verified: {_PENDING_REASON}\n"
        "files outside the spec's folder are not recorded, so their report cannot be added"
    )
