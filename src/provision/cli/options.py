"""Options and arguments that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

DEFAULT_SPEC = "provision.yaml"

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
"""A click option or argument, applied to the function of a command."""


def examples(*lines: str) -> str:
    """Return the examples of a command's help."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def output_format_option(*formats: str, text: str = "How the result is written.") -> Decorator:
    """Return the option --output-format with the formats of a command; the first is the default."""
    return click.option(
        "--output-format", type=click.Choice(formats), default=formats[0], help=text
    )


SPEC = click.argument("spec", type=click.Path(path_type=Path), required=False)
SPECS = click.argument("specs", nargs=-1, type=click.Path(path_type=Path), metavar="[SPEC]...")
TARGETS = click.option(
    "--target",
    "-t",
    "targets",
    multiple=True,
    metavar="NAME",
    help="Target of the spec; may be given several times.",
)
TARGET = click.option("--target", "-t", metavar="NAME", help="Target of the spec.")
ALL_TARGETS = click.option("--all", "all_targets", is_flag=True, help="All targets of the spec.")
YES = click.option("--yes", "-y", is_flag=True, help="Do not ask.")
OUTPUT_FORMAT = output_format_option("text", "json")
OUTPUT_FORMAT_WITH_MARKDOWN = output_format_option("text", "json", "markdown")
OUTPUT_FORMAT_WITH_JUNIT = output_format_option(
    "text", "json", "junit", text="How the result is written; junit is XML for CI."
)
ADOPT = click.option(
    "--adopt",
    is_flag=True,
    help="Take over an instance of this name that another state made: where that state is lost.",
)
LOCKED = click.option("--locked", is_flag=True, help="Refuse a missing or stale lock.")
OFFLINE = click.option("--offline", is_flag=True, help="Use only what is in uv's cache.")
LOCK_TIMEOUT = click.option(
    "--lock-timeout",
    type=click.FloatRange(0),
    default=0.0,
    metavar="SECONDS",
    help="Wait for another provision at work here.",
)
SANDBOX = click.option(
    "--sandbox",
    is_flag=True,
    help="Google Cloud as a look-alike on this machine: no account, no cost.",
)
FAULTS = click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="NAME[:ARGUMENT]",
    help="In a sandbox: something to go wrong (provision sandbox faults).",
)
VERBOSE = click.option("--verbose", "-v", is_flag=True, help="Show every check.")


def spec_or_default(path: Path | None) -> Path:
    """Return the spec that the command line names, else provision.yaml of this folder.

    Raises:
        UsageError: the command line names no spec, and this folder has no provision.yaml.
    """
    if path is None and not Path(DEFAULT_SPEC).exists():
        raise click.UsageError(
            f"no spec is named, and there is no {DEFAULT_SPEC} here; name one, or write a "
            "first one with `provision init`"
        )
    return path or Path(DEFAULT_SPEC)
