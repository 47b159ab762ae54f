"""The command line: its words and help. Everything heavier than click is imported by the command
that needs it.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from provision import __version__
from provision.cli.facts import facts
from provision.cli.logging_options import LOG_FILE, VERBOSITY, start_log
from provision.cli.options import (
    ADOPT,
    ALL_TARGETS,
    DEFAULT_SPEC,
    FAULTS,
    LOCK_TIMEOUT,
    OFFLINE,
    OUTPUT_FORMAT,
    SANDBOX,
    SPEC,
    TARGET,
    VERBOSE,
    YES,
    examples,
    spec_or_default,
)
from provision.cli.probe import probe
from provision.cli.report import report
from provision.cli.sandbox import sandbox
from provision.cli.seeing import COMMANDS

_SECTIONS = {
    "start": ("init",),
    "check": ("lint", "explain", "suggest", "why", "facts", "schema"),
    "make": ("lock", "plan", "render", "apply", "run", "destroy"),
    "look": (
        "status",
        "verify",
        "attach",
        "open",
        "report",
        "diff",
        "parity",
        "env",
        "probe",
        "export",
    ),
    "repair": ("orphans", "adopt"),
    "try": ("sandbox",),
    "shell": ("completion",),
}
_UPGRADE_ALL = "*"


class SectionedGroup(click.Group):
    """A group whose help lists commands by what they are for."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, section by section."""
        for title, names in _SECTIONS.items():
            with formatter.section(title.capitalize()):
                commands = [(name, self.get_command(ctx, name)) for name in names]
                formatter.write_dl(
                    [
                        (name, command.get_short_help_str(80))
                        for name, command in commands
                        if command is not None
                    ]
                )


class PassthroughCommand(click.Command):
    """A command whose words after the first `--` are another program's: they are set apart before
    click reads any.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the program's words as `ctx.obj`; click reads what stands before them."""
        place = args.index("--") if "--" in args else len(args)
        ctx.obj = tuple(args[place + 1 :])
        words = args[:place]
        try:
            return super().parse_args(ctx, list(words))
        except click.UsageError as error:
            spec = 1 if words and words[0].endswith((".yaml", ".yml")) else 0
            if place < len(args) or words[spec : spec + 1] == [] or words[spec].startswith("-"):
                raise
            meant = shlex.join([*words[:spec], "--", *words[spec:]])
            raise click.UsageError(
                f"{error.format_message().rstrip('.')}; a program stands after --, as in: "
                f"provision run {meant}",
                ctx,
            ) from None

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the pieces of the usage line."""
        return [*super().collect_usage_pieces(ctx), "--", "PROGRAM", "[ARGUMENT]..."]


@click.group(
    cls=SectionedGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="provision")
@VERBOSITY
@LOG_FILE
def app(verbosity: int, log_file: Path | None) -> None:
    """Make machine learning environments from one spec, and prove on the device that they work.

    \b
    provision init             write a first spec, provision.yaml
    provision apply --yes      check it, lock it, make it, verify it

    SPEC is provision.yaml where none is named.
    """  # noqa: D301
    start_log(verbosity, log_file)


for _command in (facts, probe, report, sandbox, *COMMANDS):
    app.add_command(_command)


@app.command(epilog=examples("provision init", "provision init specs/mine.yaml"))
@click.argument("path", type=click.Path(path_type=Path), default=Path(DEFAULT_SPEC))
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@OUTPUT_FORMAT
def init(path: Path, force: bool, form: str) -> int:
    """Write a commented first spec."""
    from provision.cli import making

    return making.init(path, force=force, form=form)


@app.command(
    epilog=examples(
        "provision lint specs/*.yaml",
        "provision lint --fix provision.yaml",
        "provision lint --output-format json provision.yaml",
    )
)
@click.argument("specs", nargs=-1, type=click.Path(path_type=Path))
@click.option("--fix", is_flag=True, help="Apply the safe fixes.")
@click.option("--diff", is_flag=True, help="Show the safe fixes as a diff; change nothing.")
@click.option(
    "--skip-foreign",
    is_flag=True,
    help="Leave alone files that are no specs: not called provision*.yaml, without an "
    "apiVersion of ours.",
)
@click.option(
    "--output-format",
    "form",
    type=click.Choice(["text", "concise", "json", "sarif", "github"]),
    default="text",
    help="How findings are written.",
)
def lint(specs: tuple[Path, ...], fix: bool, diff: bool, skip_foreign: bool, form: str) -> int:
    """Say what is wrong with specs: offline, without credentials."""
    from provision.cli import checking

    return checking.lint(
        specs or (spec_or_default(None),),
        fix=fix or diff,
        dry=diff,
        skip_foreign=skip_foreign,
        form=form,
    )


@app.command(
    epilog=examples(
        "provision explain PKG001",
        "provision explain trainer-needs-accelerate --output-format markdown",
    )
)
@click.argument("rule", metavar="RULE")
@click.option(
    "--output-format",
    "form",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    help="How the page is written.",
)
def explain(rule: str, form: str) -> int:
    """Say what a finding means, by its id or its name."""
    from provision.cli import checking

    return checking.explain(rule, form)


@app.command(
    epilog=examples(
        "provision suggest",
        "provision suggest specs/mine.yaml --resolve",
        "provision suggest --gpu V100 --transformers 5.13",
    )
)
@SPEC
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
    "--resolve",
    "with_uv",
    is_flag=True,
    help="Ask uv whether each can be resolved; needs the network.",
)
@OFFLINE
@OUTPUT_FORMAT
def suggest(
    spec: Path | None, most: int, with_uv: bool, offline: bool, form: str, **words: str | None
) -> int:
    """Find versions that every rule accepts, near a spec or for a card."""
    from provision.cli import checking

    asked = {name: word for name, word in words.items() if word is not None}
    if asked and spec is not None:
        raise click.UsageError(
            f"--{next(iter(asked))} is for a search without a spec; change the spec "
            "instead, or leave it out"
        )
    if asked and "gpu" not in asked:
        raise click.UsageError(
            "a search without a spec needs --gpu, as in --gpu L4, or --gpu none for CPU"
        )
    return checking.suggest(
        asked or spec_or_default(spec), most=most, with_uv=with_uv, offline=offline, form=form
    )


@app.command(
    epilog=examples(
        "provision why trace.txt",
        "python train.py 2>&1 | provision why -",
        "provision why notebook.ipynb --spec specs/mine.yaml --fix",
    )
)
@click.argument("trace", metavar="TRACE")
@click.option(
    "--spec",
    type=click.Path(path_type=Path),
    help="Hold the causes against this spec and its lock.",
)
@click.option(
    "--report", type=click.Path(path_type=Path), help="Hold the causes against this report.json."
)
@click.option(
    "--fix",
    is_flag=True,
    help="Change the spec so that the findings that explain it are gone; prints the change.",
)
@OUTPUT_FORMAT
def why(trace: str, spec: Path | None, report: Path | None, fix: bool, form: str) -> int:
    """Say what an error means, and which of its causes is true here.

    TRACE is a file with the error's text, a notebook with its saved output, or - for standard
    input. Exit 1 when nothing in it is known.
    """
    from provision.cli import checking

    if fix and spec is None:
        raise click.UsageError("--fix changes a spec; name it with --spec")
    return checking.why(trace, spec, report, fix=fix, form=form)


@app.command(
    epilog=examples(
        "provision schema > spec.schema.json", "provision schema report > report.schema.json"
    )
)
@click.argument("of", type=click.Choice(["spec", "report"]), default="spec")
def schema(of: str) -> int:
    """Print the JSON Schema of the spec language, or of a report.

    That of the language (draft 7) is for editors, that of a report (draft 2020-12) for programs
    that read one.
    """
    from provision.cli import checking

    return checking.schema(of)


@app.command(
    epilog=examples(
        "provision lock",
        "provision lock --check",
        "provision lock --verify",
        "provision lock --upgrade specs/quickstart.yaml   # all of it",
        "provision lock --upgrade torch --upgrade numpy",
        "provision lock --diff old.lock",
        "git show main:provision.lock | provision lock --diff - --output-format markdown",
    )
)
@SPEC
@click.option(
    "--check",
    is_flag=True,
    help="Only say whether the lock holds: no network. Exit 1 when it does not. It asks the "
    "lock; lint asks the spec.",
)
@click.option(
    "--verify",
    "asking",
    is_flag=True,
    help="Ask the indexes whether they list each file of the lock with its hash. Exit 1 when "
    "one differs.",
)
@click.option(
    "--upgrade",
    "upgrades",
    is_flag=False,
    flag_value=_UPGRADE_ALL,
    multiple=True,
    metavar="[PACKAGE]",
    help="Choose every version anew, or that of one package and what must move with it; may be "
    "given several times.",
)
@click.option(
    "--diff",
    "old",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="OLD",
    help="Only say what differs from another lock (- reads it from standard input), and what "
    "follows: no network. Exit 0 also when something differs.",
)
@OFFLINE
@click.option(
    "--output-format",
    "form",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    help="How the result is written; markdown with --diff.",
)
def lock(
    spec: Path | None,
    check: bool,
    asking: bool,
    upgrades: tuple[str, ...],
    old: Path | None,
    offline: bool,
    form: str,
) -> int:
    """Choose one set of versions, with a hash for every file."""
    modes = (
        ("--check", check),
        ("--verify", asking),
        ("--upgrade", bool(upgrades)),
        ("--diff", old is not None),
    )
    if len(said := [word for word, is_said in modes if is_said]) > 1:
        raise click.UsageError(f"{said[0]} and {said[1]} are asked one at a time")
    if asking and offline:
        raise click.UsageError(
            "--verify asks indexes, so --offline does not go with it; --check needs no network"
        )
    if form == "markdown" and old is None:
        raise click.UsageError("--output-format markdown is for --diff")
    spec, upgrade = _parse_upgrade(spec, upgrades)
    path = spec_or_default(spec)
    if old is not None:
        from provision.cli import diff as comparing

        return comparing.show_lock_diff(path, old, form)
    if check:
        from provision.cli import lock_check

        return lock_check.lock_check(path, form)
    if asking:
        from provision.cli import lock_check

        return lock_check.lock_verify(path, form)
    from provision.cli import lock as locking

    return locking.lock(path, upgrade=upgrade, offline=offline, form=form)


@app.command(
    epilog=examples(
        "provision plan", "provision plan --out plan.json && provision apply --plan plan.json --yes"
    )
)
@SPEC
@TARGET
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Save the plan; `apply --plan` refuses it when something moved since.",
)
@click.option(
    "--detailed-exitcode", is_flag=True, help="Exit 0 for no changes, 2 for changes, 1 for errors."
)
@click.option("--locked", "frozen", is_flag=True, help="Refuse a missing or stale lock.")
@ADOPT
@SANDBOX
@FAULTS
@OFFLINE
@OUTPUT_FORMAT
def plan(spec: Path | None, targets: tuple[str, ...], **options: Any) -> int:
    """Show what apply would do, and why. Changes nothing."""
    from provision.cli import making

    return making.plan(spec_or_default(spec), targets, **options)


@app.command(
    epilog=examples(
        "provision render specs/hf-trainer.yaml",
        "provision render specs/hf-trainer.yaml --check   # in CI",
    )
)
@SPEC
@TARGET
@click.option(
    "--check",
    is_flag=True,
    help="Only say whether the files are what spec and lock make; exit 1 when they are not.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Write them there instead of beside the spec.",
)
@click.option(
    "--payload-url",
    default="",
    metavar="URL",
    help="Write what the cell carries into NAME.payload, and have the cell fetch it from here.",
)
@LOCK_TIMEOUT
@OUTPUT_FORMAT
def render(spec: Path | None, targets: tuple[str, ...], **options: Any) -> int:
    """Write the notebook and the cell of Colab targets."""
    from provision.cli import render as rendering

    return rendering.render(spec_or_default(spec), targets, **options)


@app.command(
    epilog=examples(
        "provision apply",
        "provision apply specs/quickstart.yaml --yes",
        "provision apply --locked --yes   # in CI",
    )
)
@SPEC
@TARGET
@ALL_TARGETS
@click.option(
    "--plan",
    "saved_plan",
    type=click.Path(path_type=Path),
    help="Carry out a saved plan, and only that.",
)
@click.option("--verify", is_flag=True, help="Verify again even when nothing changed.")
@click.option("--locked", "frozen", is_flag=True, help="Refuse a missing or stale lock.")
@click.option(
    "--detach",
    is_flag=True,
    help="Do not wait for an instance's report; `provision attach` does later.",
)
@click.option(
    "--keep",
    is_flag=True,
    help="Leave the machine of a target with via: colab-cli running; `provision destroy` gives "
    "it back.",
)
@ADOPT
@SANDBOX
@FAULTS
@LOCK_TIMEOUT
@OFFLINE
@YES
@VERBOSE
@OUTPUT_FORMAT
def apply(spec: Path | None, targets: tuple[str, ...], **options: Any) -> int:
    """Make what the spec says, and prove it on the device."""
    from provision.cli import making

    return making.apply(spec_or_default(spec), targets, **options)


@app.command(
    cls=PassthroughCommand,
    epilog=examples(
        "provision run -- python train.py",
        "provision run specs/quickstart.yaml -- python -c 'import torch'",
    ),
)
@SPEC
@click.option("--target", "-t", metavar="NAME", help="Target of the spec.")
@click.option(
    "--monitor/--no-monitor",
    default=True,
    show_default=True,
    help="Record what the program takes: RAM, shared memory, GPU.",
)
@click.pass_obj
def run(argv: tuple[str, ...], spec: Path | None, target: str | None, *, monitor: bool) -> int:
    """Run a program in the environment, with its variables, paths and secrets.

    What it took is told at its end; `provision report run` draws it.
    """
    from provision.cli import making

    if not argv:
        raise click.UsageError(
            "no program is named; write it after --, as in: provision run -- python train.py"
        )
    return making.run(spec_or_default(spec), target, argv, monitor=monitor)


@app.command(epilog=examples("provision destroy", "provision destroy specs/quickstart.yaml --yes"))
@SPEC
@TARGET
@ALL_TARGETS
@click.option("--force", is_flag=True, help="Also remove environments in which programs run.")
@SANDBOX
@FAULTS
@LOCK_TIMEOUT
@YES
@OUTPUT_FORMAT
def destroy(spec: Path | None, targets: tuple[str, ...], **options: Any) -> int:
    """Remove exactly what apply made."""
    from provision.cli import making

    return making.destroy(spec_or_default(spec), targets, **options)


@app.command(epilog=examples("provision adopt", "provision adopt specs/quickstart.yaml --yes"))
@SPEC
@SANDBOX
@LOCK_TIMEOUT
@YES
@OUTPUT_FORMAT
def adopt(spec: Path | None, **options: Any) -> int:
    """Make a state that came from another machine or folder this folder's own.

    It shows what the state names first. Nothing is removed; from then on destroy and apply treat
    what is here as made here.
    """
    from provision.cli import adopt as adopting

    return adopting.adopt(spec_or_default(spec), **options)


@app.command(
    epilog=examples(
        'eval "$(provision completion bash)"',
        "provision completion fish > ~/.config/fish/completions/provision.fish",
    )
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> int:
    """Print the completion script of a shell."""
    from provision.cli.main import completion_script

    click.echo(completion_script(shell))
    return 0


def _parse_upgrade(
    spec: Path | None, words: tuple[str, ...]
) -> tuple[Path | None, bool | frozenset[str]]:
    """Return the spec and what to choose anew. A value that ends as specs do is the spec: click
    gives an option that may have a value the next word.
    """
    specs = [Path(word) for word in words if word.endswith((".yaml", ".yml"))]
    names = frozenset(word for word in words if word != _UPGRADE_ALL and Path(word) not in specs)
    named = [*specs, *([spec] if spec is not None else [])]
    if len(named) > 1:
        raise click.UsageError(
            f"two specs are named, {named[0]} and {named[1]}; a package is named as in "
            "--upgrade torch"
        )
    if "" in names:
        raise click.UsageError("--upgrade= names no package; --upgrade alone means all of them")
    if names and len(names) < len(set(words)):
        raise click.UsageError(
            "--upgrade alone means every package, and does not stand beside --upgrade " + min(names)
        )
    return (named[0] if named else None), names or bool(words)
