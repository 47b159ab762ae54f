"""`provision lint`: checks specs and notebooks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from provision.cli.app import FILE, examples, output_format_option, spec_or_default
from provision.errors import UsageError

if TYPE_CHECKING:
    from provision.commands.lint_options import LintOptions
    from provision.effects.system import Reader, System
    from provision.rules.policy import Policy

_SEVERITIES = ("error", "warning", "unknown", "info")


@click.command(
    epilog=examples(
        "provision lint specs/*.yaml",
        "provision lint --fix provision.yaml",
        "provision lint --output-format json provision.yaml",
        "provision lint train.ipynb --spec provision.yaml",
    )
)
@click.argument("files", metavar="[SPEC|NOTEBOOK|FOLDER|-]...", nargs=-1, type=FILE)
@click.option(
    "--spec",
    type=FILE,
    help="Check notebooks against the targets and the lock of this spec; default: no spec.",
)
@click.option("--fix", is_flag=True, help="Apply the safe fixes.")
@click.option(
    "--unsafe-fixes",
    is_flag=True,
    help="With --fix or --diff, also apply fixes that may change what the spec declares.",
)
@click.option("--diff", is_flag=True, help="Show the safe fixes as a diff; change nothing.")
@click.option(
    "--skip-foreign",
    is_flag=True,
    help="Skip notebooks, and files whose name and `apiVersion` show that they are not specs.",
)
@click.option(
    "--stdin-filename",
    type=FILE,
    metavar="PATH",
    help="Use this file name for the text from standard input (`-`); default: "
    "stdin.yaml, or stdin.ipynb for a notebook.",
)
@click.option(
    "--select",
    multiple=True,
    metavar="RULES",
    help="Report only findings from these rules or areas, such as PKG001,GCP; repeatable.",
)
@click.option(
    "--ignore",
    multiple=True,
    metavar="RULES",
    help="Do not report findings from these rules or areas; repeatable.",
)
@click.option(
    "--fail-on",
    type=click.Choice(_SEVERITIES),
    help="Exit 1 if there are findings of this severity or higher; default: error.",
)
@click.option(
    "--diff-base",
    metavar="REF",
    help="Report only findings added since the merge base with REF, such as origin/main.",
)
@click.option(
    "--baseline",
    type=FILE,
    metavar="PATH",
    help="Do not report the findings that are recorded in this file; default: none.",
)
@click.option(
    "--write-baseline",
    is_flag=True,
    help="Record all current findings in the file given by --baseline.",
)
@click.option(
    "--policy",
    metavar="PATH|REF",
    help="Enforce the policy in this file, or in the repository's root folder at this commit; "
    "default: the policy at --diff-base, otherwise the project's policy.",
)
@click.option(
    "--statistics",
    is_flag=True,
    help="Print the number of findings for each rule instead of the findings.",
)
@click.option(
    "--output",
    "outputs",
    multiple=True,
    metavar="FORMAT:PATH",
    help="Also write the findings to a file, given as FORMAT:PATH, such as sarif:lint.sarif; "
    "repeatable.",
)
@output_format_option(
    *("text", "concise", "json", "sarif", "github", "gitlab", "junit", "markdown", "rdjson")
)
def lint(files: tuple[Path, ...], **options: Any) -> int:
    """Check specs and notebooks, offline and without credentials."""
    _check_options(files, options)
    outputs = list(map(_parse_output, options["outputs"]))
    from provision.adapters import RealSystem
    from provision.cli import console, lint_output
    from provision.commands import lint as command
    from provision.effects.local import WriteFile

    system: System = RealSystem()
    if Path("-") in files:
        from provision.commands.lint_files import read_stdin

        files, system = read_stdin(files, options["stdin_filename"], "stdin.yaml", system)
    files = files or (spec_or_default(None),)
    lint_options = _to_lint_options(options, system)
    try:
        result = command.lint(files, system, console.print_note, lint_options)
    finally:
        if lint_options.base is not None:
            lint_options.base.close()
    code = max(result.exit_code, int(options["diff"] and bool(result.changed)))
    for output_format, path in outputs:
        text = lint_output.render_findings(result, output_format, system.environment(), code)
        system.perform(WriteFile(path.absolute(), text), console.print_note)
    if options["statistics"]:
        lint_output.print_statistics(result)
    else:
        lint_output.print_findings(result, options["output_format"], system.environment(), code)
    lint_output.print_changes_and_errors(result, options["output_format"], dry=options["diff"])
    return code


def _check_options(files: tuple[Path, ...], options: dict[str, Any]) -> None:
    """Check that options fit together.

    Raises:
        UsageError: they do not.
    """
    is_fixed, stdin = options["fix"], Path("-") in files
    if options["unsafe_fixes"] and not (is_fixed or options["diff"]):
        raise UsageError(
            "--unsafe-fixes needs --fix or --diff", hint="add --diff to review the fixes"
        )
    if options["write_baseline"] and (options["baseline"] is None or options["diff_base"]):
        raise UsageError(
            "--write-baseline needs --baseline, and cannot be combined with --diff-base",
            hint="add --baseline provision-baseline.json, and remove --diff-base",
        )
    if options["statistics"] and options["output_format"] != "text":
        raise UsageError("--statistics works only with text output", hint="remove --output-format")
    if options["stdin_filename"] is not None and not stdin:
        raise UsageError("--stdin-filename requires `-` as the file")
    if stdin and is_fixed:
        raise UsageError("--fix cannot change standard input", hint="use --diff to show the fixes")


def _parse_output(word: str) -> tuple[str, Path]:
    """Return the format and the file of an output.

    Raises:
        UsageError: the word is not FORMAT:PATH.
    """
    from provision.cli.lint_output import FORMATS

    output_format, _, path = word.partition(":")
    if output_format not in FORMATS or not path:
        raise UsageError(
            f"--output {word} does not have the form FORMAT:PATH",
            hint=f"use one of the formats {', '.join(FORMATS)}, as in --output sarif:lint.sarif",
        )
    return output_format, Path(path)


def _read_policy(word: str | None, base: str | None, system: System) -> Policy | None:
    """Return the policy of a file or a commit; None if the base of a comparison has none.

    Raises:
        UsageError: there is no such file or commit, or it has no policy.
    """
    from provision.adapters.git_revision import open_revision
    from provision.commands.shared.configuration import NO_POLICY
    from provision.commands.shared.configuration_file import read_policy

    name = word or base or ""
    if word is not None and Path(word).is_file():
        policy = read_policy(Path(word), system, word)
    else:
        revision = open_revision(Path.cwd(), name, system.environment(), common=False)
        try:
            policy = read_policy(revision.root, cast("Reader", revision), name)
        finally:
            revision.close()
    if policy != NO_POLICY:
        return policy
    if word is not None:
        raise UsageError(
            f"{word} has no [policy] table", hint="add a [policy] table to provision.toml"
        )
    return None


def _to_lint_options(options: dict[str, Any], system: System) -> LintOptions:
    from provision.commands.lint_options import LintOptions
    from provision.commands.shared.configuration import NO_OVERRIDES, read_overrides
    from provision.diagnostics import Applicability

    applied = set()
    if options["fix"] or options["diff"]:
        applied.add(Applicability.SAFE)
        if options["unsafe_fixes"]:
            applied.add(Applicability.UNSAFE)
    overrides = NO_OVERRIDES
    if options["select"] or options["ignore"] or options["fail_on"]:
        overrides = read_overrides(options["select"], options["ignore"], options["fail_on"])
    if options["policy"] is not None or options["diff_base"] is not None:
        policy = _read_policy(options["policy"], options["diff_base"], system)
        overrides = replace(overrides, policy=policy)
    base = None
    if options["diff_base"] is not None:
        from provision.adapters.git_revision import open_revision

        base = open_revision(Path.cwd(), options["diff_base"], system.environment(), common=True)
    return LintOptions(
        frozenset(applied),
        options["diff"],
        options["skip_foreign"],
        options["spec"],
        overrides,
        base,
        options["baseline"],
        options["write_baseline"],
        _count_processes,
    )


def _count_processes() -> int:
    from provision.adapters.forked_processes import count_usable_processes

    return count_usable_processes()
