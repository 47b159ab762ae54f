"""The options and arguments that several commands take, each written once."""

from __future__ import annotations

from pathlib import Path

import click

DEFAULT_SPEC = "provision.yaml"


def examples(*lines: str) -> str:
    """Return the examples of a command's help."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


SPEC = click.argument("spec", type=click.Path(path_type=Path), required=False)
TARGET = click.option(
    "--target",
    "-t",
    "targets",
    multiple=True,
    metavar="NAME",
    help="Target of the spec; may be given several times.",
)
ALL_TARGETS = click.option("--all", "everything", is_flag=True, help="All targets of the spec.")
YES = click.option("--yes", "-y", is_flag=True, help="Do not ask.")
OUTPUT_FORMAT = click.option(
    "--output-format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    help="How the result is written.",
)
OUTPUT_FORMAT_WITH_JUNIT = click.option(
    "--output-format",
    "form",
    type=click.Choice(["text", "json", "junit"]),
    default="text",
    help="How the result is written; junit is XML for CI.",
)
ADOPT = click.option(
    "--adopt",
    is_flag=True,
    help="Take over an instance of this name that another state made: where that state is lost.",
)
OFFLINE = click.option("--offline", is_flag=True, help="Use only what is in uv's cache.")
LOCK_TIMEOUT = click.option(
    "--lock-timeout",
    "wait",
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
    """Return the spec that is meant; raises UsageError where none is named and none is here."""
    if path is None and not Path(DEFAULT_SPEC).exists():
        raise click.UsageError(
            f"no spec is named, and there is no {DEFAULT_SPEC} here; name one, or write a "
            "first one with `provision init`"
        )
    return path or Path(DEFAULT_SPEC)
