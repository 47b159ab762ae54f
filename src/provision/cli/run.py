"""`provision run`: runs a program in the environment of a target."""

from __future__ import annotations

import os
import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from provision.cli.app import (
    FAULTS,
    LOCK_TIMEOUT,
    RANK,
    SANDBOX,
    SPEC,
    TARGET,
    examples,
)

if TYPE_CHECKING:
    from provision.commands.run import RunOptions, RunResult
    from provision.commands.shared.load import LoadedSpec
    from provision.effects.system import System


class PassthroughCommand(click.Command):
    """A command whose arguments after the first `--` belong to another program."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the program's arguments as `ctx.obj`, and parse those before them."""
        end = args.index("--") if "--" in args else len(args)
        ctx.obj = tuple(args[end + 1 :])
        own = args[:end]
        try:
            return super().parse_args(ctx, list(own))
        except click.UsageError as error:
            specs = 1 if own and own[0].endswith((".yaml", ".yml")) else 0
            program = own[specs:]
            if end < len(args) or not program or program[0].startswith("-"):
                raise
            line = shlex.join([*own[:specs], "--", *program])
            raise click.UsageError(
                f"{error.format_message().rstrip('.')}; put the program after `--`, as in "
                f"`provision run {line}`",
                ctx,
            ) from None

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the pieces of the usage line."""
        return [*super().collect_usage_pieces(ctx), "--", "PROGRAM", "[ARGUMENT]..."]


@click.command(
    cls=PassthroughCommand,
    epilog=examples(
        "provision run -- python train.py",
        "provision run specs/quickstart.yaml -- python -c 'import torch'",
        "provision run cluster.yaml --target cluster -- python train.py   # as a job",
    ),
)
@SPEC
@TARGET
@click.option(
    "--monitor/--no-monitor",
    default=True,
    show_default=True,
    help="Record how much RAM, shared memory and GPU memory the program uses.",
)
@click.option(
    "--detach", is_flag=True, help="Return as soon as the job is created; custom jobs only."
)
@RANK
@SANDBOX
@FAULTS
@LOCK_TIMEOUT
@click.pass_obj
def run(
    argv: tuple[str, ...],
    *,
    spec: Path,
    target: str | None,
    monitor: bool,
    detach: bool,
    rank: str,
    sandbox: bool,
    faults: tuple[str, ...],
    lock_timeout: float,
) -> int:
    """Run a program in the environment, with its variables, paths and secrets.

    Prints the peak memory use at the end; `provision report run` shows the details. At a target of
    kind vertex-job the program runs on all machines of a job, which goes on after Ctrl-C.
    """
    from provision.commands.run import RunOptions

    if not argv:
        raise click.UsageError(
            "no program was given; put it after --, for example: provision run -- python train.py"
        )
    options = RunOptions(monitor, detach, rank, lock_timeout)
    if sandbox or faults:
        from provision.cli.session import open_session

        with open_session(spec, sandbox=sandbox, faults=faults) as (loaded, system):
            return _run(loaded, target, argv, system, options)
    from provision.adapters import RealSystem
    from provision.commands.shared.load import load_spec

    system = RealSystem()
    return _run(load_spec(spec, system), target, argv, system, options)


def _run(
    loaded: LoadedSpec,
    target: str | None,
    argv: tuple[str, ...],
    system: System,
    options: RunOptions,
) -> int:
    from provision.commands import run as command
    from provision.commands.shared.target_selection import select_target

    name = select_target(loaded, target)
    result = command.run(loaded, name, argv, system, show_program_progress, options)
    return finish_run(loaded, name, result, system)


def finish_run(loaded: LoadedSpec, target: str, result: RunResult, system: System) -> int:
    """Print the end of a run, and return its exit code; a signal ends this process too."""
    from provision.adapters.monitored_process import exit_with_signal
    from provision.cli import console

    if result.notice:
        console.print_note(result.notice)
    if result.record is not None:
        show = loaded.command("report run", target)
        if loaded.sandbox_sources is not None:
            show = f"provision report run {shlex.quote(os.path.relpath(result.record))}"
        print_run_summary(result.record, show, system)
    if result.code < 0:
        exit_with_signal(-result.code)
    return result.code


def show_program_progress(line: str) -> None:
    """Write output of the user's program to standard output, other lines to standard error."""
    import sys

    from provision.cli import console
    from provision.effects.system import ProgramOutput

    if isinstance(line, ProgramOutput):
        sys.stdout.write(line)
        sys.stdout.flush()
    else:
        console.print_note(line)


def print_run_summary(record: Path, show_command: str, system: System) -> None:
    """Write the resources that a run used to standard error, which may be closed by now.

    One line, after another one if the program ended abnormally.
    """
    from provision.cli import console
    from provision.commands.shared.run_records import read_run_record
    from provision.errors import ProvisionError
    from provision.views import run_record_text

    with suppress(OSError):
        if not system.exists(record):
            console.print_note(
                "provision: this run was not recorded "
                f"({_missing_record_reason(record, system)}; --no-monitor turns recording off)"
            )
            return
        try:
            *abnormal_end, peaks = run_record_text.render_ending(read_run_record(record, system))
            lines = [*abnormal_end, f"{peaks} (details: {show_command})"]
        except ProvisionError as error:
            lines = [error.what]
        for line in lines:
            console.print_note(f"provision: {line}")


def _missing_record_reason(record: Path, system: System) -> str:
    folder = os.path.relpath(record.parent)
    if not system.platform().startswith("linux"):
        return "runs are recorded only on Linux"
    if not system.exists(record.parent):
        return f"{folder} does not exist"
    if not system.is_writable(record.parent):
        return f"{folder} is not writable"
    return "the monitor ended before writing a record"
