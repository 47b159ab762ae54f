"""The commands that look at what exists, as words and help: what they do is in looking, comparing
and exporting.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from provision.cli.options import (
    ALL_TARGETS,
    DEFAULT_SPEC,
    FAULTS,
    LOCK_TIMEOUT,
    OFFLINE,
    OUTPUT_FORMAT,
    OUTPUT_FORMAT_WITH_JUNIT,
    SANDBOX,
    SPEC,
    TARGET,
    VERBOSE,
    examples,
    spec_or_default,
)


@click.command(epilog=examples("provision status", "provision status --output-format json"))
@SPEC
@SANDBOX
@OUTPUT_FORMAT
def status(spec: Path | None, sandbox: bool, form: str) -> int:
    """Say what exists, whether it is current, and its last verdict."""
    from provision.cli import looking

    return looking.status(spec_or_default(spec), form, sandbox=sandbox)


@click.command(
    epilog=examples(
        "provision verify",
        "provision verify --only P02 --only R05",
        "provision verify --output-format junit > junit.xml",
    )
)
@SPEC
@TARGET
@ALL_TARGETS
@click.option(
    "--only", multiple=True, metavar="CHECK", help="Repeat one check; may be given several times."
)
@SANDBOX
@FAULTS
@LOCK_TIMEOUT
@VERBOSE
@OUTPUT_FORMAT_WITH_JUNIT
def verify(spec: Path | None, targets: tuple[str, ...], **options: Any) -> int:
    """Run the verification again in an environment that exists."""
    from provision.cli import looking

    return looking.verify(spec_or_default(spec), targets, **options)


@click.command(epilog=examples("provision attach", "provision attach specs/workbench-l4.yaml"))
@SPEC
@TARGET
@SANDBOX
@FAULTS
@LOCK_TIMEOUT
@VERBOSE
@OUTPUT_FORMAT
def attach(spec: Path | None, targets: tuple[str, ...], **options: Any) -> int:
    """Wait for the report of an instance that was made earlier."""
    from provision.cli import looking

    return looking.attach(spec_or_default(spec), targets, **options)


@click.command("open", epilog=examples("provision open", "provision open specs/workbench-l4.yaml"))
@SPEC
@TARGET
@SANDBOX
@OUTPUT_FORMAT
def open_(spec: Path | None, targets: tuple[str, ...], **options: Any) -> int:
    """Show the address of an instance's JupyterLab, and how to get a shell."""
    from provision.cli import looking

    return looking.open_(spec_or_default(spec), targets, **options)


@click.command(epilog=examples("provision orphans", "provision orphans specs/*.yaml"))
@click.argument("specs", nargs=-1, type=click.Path(path_type=Path), metavar="[SPEC]...")
@SANDBOX
@OUTPUT_FORMAT
def orphans(specs: tuple[Path, ...], **options: Any) -> int:
    """List instances of ours that no state here knows. Exit 1 when there are some."""
    from provision.cli import looking

    return looking.orphans(specs or (spec_or_default(None),), **options)


@click.command(
    epilog=examples(
        "provision diff colab.json workbench.json --html diff.html",
        "provision diff colab workbench --spec specs/hf-trainer.yaml",
    )
)
@click.argument("one", metavar="A")
@click.argument("other", metavar="B")
@click.option(
    "--spec",
    type=click.Path(path_type=Path),
    help="The spec whose targets A and B are, where they are no files.",
)
@click.option(
    "--all", "everything", is_flag=True, help="Every difference, those of the surroundings too."
)
@click.option(
    "--html",
    "page",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the comparison as one HTML page.",
)
@click.option(
    "--output-format",
    "form",
    type=click.Choice(["text", "json", "markdown", "html"]),
    default="text",
    help="How the result is written.",
)
def diff(one: str, other: str, spec: Path | None, **options: Any) -> int:
    """Say what differs between two verifications, and which difference matters.

    A and B are report.json files, or targets with stored reports. Exit 1 when an identity
    reading or a check's status differs, or
    a report was changed after the probe wrote it.
    """
    from provision.cli import diff as comparing

    # Two files need no spec: the one that happens to be here may have nothing to do with them.
    default = (
        Path(DEFAULT_SPEC)
        if Path(DEFAULT_SPEC).exists() and not (one.endswith(".json") and other.endswith(".json"))
        else None
    )
    return comparing.show_report_diff(one, other, spec or default, **options)


EXPORTS = (
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
        "provision export --format pylock --target here --out pylock.toml",
    )
)
@SPEC
@click.option(
    "--format",
    "kind",
    type=click.Choice(EXPORTS),
    metavar="FORMAT",
    required=True,
    help=f"What it is written as: {', '.join(EXPORTS)}.",
)
@click.option("--target", "-t", metavar="NAME", help="Target of the spec: a document is for one.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Write this file instead of to standard output."
)
@click.option("--force", is_flag=True, help="Replace a file that no export made.")
@OFFLINE
@OUTPUT_FORMAT
def export(spec: Path | None, target: str | None, **options: Any) -> int:
    """Write the lock, or how its training is started, in a format of another tool."""
    from provision.cli import export as exporting

    return exporting.export(spec_or_default(spec), target, **options)


@click.command(
    epilog=examples(
        "provision parity", "provision parity specs/hf-trainer.yaml --output-format markdown"
    )
)
@SPEC
@SANDBOX
@click.option(
    "--output-format",
    "form",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    help="How the result is written.",
)
def parity(spec: Path | None, sandbox: bool, form: str) -> int:
    """Say what is proven equal across all targets, and how to prove the rest.

    Exit 1 with a proven difference, 3 while something is not yet proven.
    """
    from provision.cli import parity as equality

    return equality.parity(spec_or_default(spec), sandbox=sandbox, form=form)


@click.command(
    epilog=examples(
        "provision env",
        "provision env --torch",
        "provision env --python .venv/bin/python --output-format markdown",
    )
)
@click.option(
    "--python",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Look from this interpreter; default: the first python3 on the PATH.",
)
@click.option(
    "--torch",
    "with_torch",
    is_flag=True,
    help="Import torch there, in a process of its own, and tell what it sees.",
)
@click.option(
    "--output-format",
    "form",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    help="How the result is written.",
)
def env(python: Path | None, with_torch: bool, form: str) -> int:
    """Say what this machine is: no spec is needed, nothing is changed."""
    from provision.cli import env as surroundings

    return surroundings.env(python, with_torch=with_torch, form=form)


COMMANDS = (status, verify, attach, open_, orphans, diff, export, parity, env)
