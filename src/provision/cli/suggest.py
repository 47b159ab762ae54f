"""`provision suggest`: finds versions that pass every rule, near a spec or for a GPU."""

from __future__ import annotations

from pathlib import Path

import click

from provision.cli.app import (
    OFFLINE,
    OPTIONAL_SPEC,
    OUTPUT_FORMAT,
    Decorator,
    completed_by,
    examples,
    spec_or_default,
)
from provision.cli.help import NumberWithin

_IMPATIENT = {"UV_HTTP_TIMEOUT": "5", "UV_HTTP_CONNECT_TIMEOUT": "3", "UV_HTTP_RETRIES": "0"}
"""Variables of uv for a resolution that nobody asked for: without a network it gives up soon."""


def _version_option(name: str, subject: str) -> Decorator:
    return click.option(
        name, metavar="VERSION", help=f"With --gpu, require this version of {subject}."
    )


@click.command(
    epilog=examples(
        "provision suggest",
        "provision suggest specs/mine.yaml --no-resolve",
        "provision suggest --gpu V100 --transformers 5.13",
    )
)
@OPTIONAL_SPEC
@click.option(
    "--gpu",
    metavar="NAME[:COUNT]",
    shell_complete=completed_by("gpus"),
    help="GPU to search for, such as L4 or V100:2, or `none` for no GPU; no spec is then needed.",
)
@_version_option("--torch", "torch, such as 2.11")
@_version_option("--transformers", "transformers, such as 5.13")
@_version_option("--python", "Python, such as 3.12")
@_version_option("--cuda", "CUDA in the torch build, such as 12.8")
@click.option(
    "--precision",
    type=click.Choice(["fp32", "tf32", "fp16", "bf16", "fp8"]),
    help="With --gpu, require support for training in this precision.",
)
@click.option(
    "--most",
    type=NumberWithin(int, 1, 20),
    default=3,
    metavar="NUMBER",
    show_default=True,
    help="Maximum number of combinations to show, at most 20.",
)
@click.option(
    "--resolve/--no-resolve",
    default=None,
    help="Require uv to resolve each combination, or skip resolution; default: try for up to "
    "30 seconds if the network is available.",
)
@OFFLINE
@OUTPUT_FORMAT
def suggest(
    spec: Path | None,
    *,
    most: int,
    resolve: bool | None,
    offline: bool,
    output_format: str,
    **constraints: str | None,
) -> int:
    """Find versions that pass every rule, starting from a spec or a GPU."""
    import os

    from provision.adapters import RealSystem
    from provision.cli import console
    from provision.cli.progress import show_progress
    from provision.commands.shared.facts_selection import select_facts
    from provision.commands.suggest import (
        EvidenceSources,
        suggest_for_options,
        suggest_for_spec,
    )
    from provision.views import suggestions

    named = {name: value for name, value in constraints.items() if value is not None}
    _check_constraints(named, spec)
    tries_to_resolve = resolve is not False and not (resolve is None and offline)
    environment = {**(_IMPATIENT if resolve is None else {}), **os.environ}
    system = RealSystem(environment, offline=offline)
    with show_progress() as progress:
        sources = EvidenceSources(
            select_facts(spec or Path("provision.yaml"), system),
            system if tries_to_resolve else None,
            progress,
            offline,
            is_required=bool(resolve),
        )
        if named:
            result = suggest_for_options(named, sources, most=most)
        else:
            result = suggest_for_spec(spec_or_default(spec), system, sources, most=most)
    if output_format == "json":
        errors = [] if result.uv_error is None else console.list_errors(result.uv_error)
        console.print_json(
            {**suggestions.to_json(result), **({"errors": errors} if errors else {})}
        )
    else:
        console.print_rendered(suggestions.render_text, result)
    if result.uv_error is not None:
        console.print_error(result.uv_error)
        return result.uv_error.exit_code
    return 0 if result.has_usable_combination else 1


def _check_constraints(named: dict[str, str], spec: Path | None) -> None:
    if named and spec is not None:
        raise click.UsageError(
            f"--{next(iter(named))} cannot be combined with a spec; edit the spec, or run "
            "the command without a spec"
        )
    if named and "gpu" not in named:
        raise click.UsageError(
            "a search without a spec needs --gpu, for example --gpu L4, or --gpu none for CPU"
        )
