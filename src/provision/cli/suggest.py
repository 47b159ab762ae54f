"""`provision suggest`: versions that every rule accepts, near a spec or for a card."""

from __future__ import annotations

from pathlib import Path

import click

from provision.cli.app import OFFLINE, OPTIONAL_SPEC, OUTPUT_FORMAT, examples, spec_or_default


@click.command(
    epilog=examples(
        "provision suggest",
        "provision suggest specs/mine.yaml --resolve",
        "provision suggest --gpu V100 --transformers 5.13",
    )
)
@OPTIONAL_SPEC
@click.option("--gpu", metavar="CARD", help="Without a spec: the card, as in L4, V100:2 or none.")
@click.option("--torch", metavar="VERSION", help="Without a spec: a version of torch, as in 2.11.")
@click.option(
    "--transformers",
    metavar="VERSION",
    help="Without a spec: a version of transformers, as in 5.13.",
)
@click.option(
    "--python", metavar="VERSION", help="Without a spec: a version of Python, as in 3.12."
)
@click.option(
    "--cuda",
    metavar="VERSION",
    help="Without a spec: the CUDA that torch is built for, as in 12.8.",
)
@click.option(
    "--precision",
    type=click.Choice(["fp32", "tf32", "fp16", "bf16", "fp8"]),
    help="Without a spec: the number format of training.",
)
@click.option(
    "--most",
    type=click.IntRange(1, 20),
    default=3,
    show_default=True,
    help="How many combinations to look for.",
)
@click.option(
    "--resolve", is_flag=True, help="Ask uv whether each can be resolved; needs the network."
)
@OFFLINE
@OUTPUT_FORMAT
def suggest(
    spec: Path | None,
    *,
    most: int,
    resolve: bool,
    offline: bool,
    output_format: str,
    **constraints: str | None,
) -> int:
    """Find versions that every rule accepts, near a spec or for a card."""
    from provision.adapters import RealSystem
    from provision.cli import console
    from provision.commands.suggest import (
        EvidenceSources,
        suggest_for_options,
        suggest_for_spec,
    )
    from provision.facts import load_facts
    from provision.views import suggestions

    named = {name: value for name, value in constraints.items() if value is not None}
    _check_constraints(named, spec)
    system = RealSystem(offline=offline)
    with console.progress() as progress:
        sources = EvidenceSources(load_facts(), system if resolve else None, progress, offline)
        if named:
            result = suggest_for_options(named, sources, most=most)
        else:
            result = suggest_for_spec(spec_or_default(spec), system, sources, most=most)
    if output_format == "json":
        console.print_json(suggestions.to_json(result))
    else:
        console.print_rendered(suggestions.render_text, result)
    if result.uv_error is not None:
        console.print_error(result.uv_error)
        return result.uv_error.exit_code
    return 0 if result.has_usable_combination else 1


def _check_constraints(named: dict[str, str], spec: Path | None) -> None:
    if named and spec is not None:
        raise click.UsageError(
            f"--{next(iter(named))} is for a search without a spec; change the spec "
            "instead, or leave it out"
        )
    if named and "gpu" not in named:
        raise click.UsageError(
            "a search without a spec needs --gpu, as in --gpu L4, or --gpu none for CPU"
        )
