"""Help and usage errors: complete, grouped, correct, with the nearest word for a typing error."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections import Counter
from contextlib import chdir
from pathlib import Path

import click
import pytest

from provision.cli.app import SECTIONS, app
from tests import fork_server

COMMANDS = sorted(app.commands)


def provision(*arguments: str) -> subprocess.CompletedProcess[str]:
    return fork_server.run(
        [*fork_server.ARGV, *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        stdin=subprocess.DEVNULL,
    )


def test_a_mistyped_target_is_named_with_the_nearest_one(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(
        'gpu: none\npython: "3.11"\npackages: [numpy]\n'
        "targets: {laptop: {kind: local}, server: {kind: local}}\n"
    )
    for target, hint in (
        ("labtop", "did you mean 'laptop'? its targets: laptop, server"),
        ("cloud", "help: its targets: laptop, server"),
    ):
        done = provision("plan", str(spec), "--target", target)
        assert done.returncode == 2
        assert f"the spec has no target `{target}" in done.stderr
        assert hint in done.stderr


def help_of(name: str) -> str:
    """The help of a command, without starting a process."""
    return app.commands[name].get_help(context_of(name))


def context_of(name: str, width: int = 80) -> click.Context:
    """A context in which a command writes its help."""
    parent = app.make_context("provision", ["--help"], resilient_parsing=True, terminal_width=width)
    command = app.get_command(parent, name)
    assert command is not None
    return command.make_context(name, ["--help"], parent=parent, resilient_parsing=True)


@pytest.mark.parametrize("width", [50, 57, 64, 71, 80, 100])
def test_no_word_is_broken_at_a_hyphen(width: int) -> None:
    for name in COMMANDS:
        context = context_of(name, width)
        assert isinstance(context.command, click.Command)
        lines = context.command.get_help(context).splitlines()
        assert [line for line in lines if re.search(r"\w-$", line)] == [], name


def test_ranges_of_numbers_are_in_words() -> None:
    texts = [help_of(name) for name in COMMANDS]
    assert not [text for text in texts if re.search(r"x[<>]=|RANGE", text)]


def test_the_grouped_help_lists_every_command_exactly_once() -> None:
    listed = Counter(name for names in SECTIONS.values() for name in names)
    assert listed == Counter(COMMANDS)
    done = provision("--help")
    assert done.returncode == 0
    titles = [
        line.rstrip(":") for line in done.stdout.splitlines() if re.fullmatch(r"[A-Z]\w+:", line)
    ]
    assert titles == ["Options", *(title.capitalize() for title in SECTIONS)]
    shown = re.findall(r"^  ([a-z-]+)  +\S", done.stdout.partition("Start:")[2], re.MULTILINE)
    assert sorted(shown) == COMMANDS
    assert provision("-h").stdout == done.stdout
    assert "\\b" not in done.stdout, "a paragraph of examples is written as it stands"


def test_lists_of_commands_have_whole_sentences() -> None:
    groups = [name for name in COMMANDS if isinstance(app.commands[name], click.Group)]
    assert {"facts", "sandbox"} < set(groups)
    for name in [None, *groups]:
        text = provision(*filter(None, [name]), "--help").stdout
        lists = text.partition("Examples:")[0].partition("-h, --help")[2]
        entries = re.findall(r"^  [a-z-]+  +\S.*(?:\n {6,}\S.*)*", lists, re.MULTILINE)
        assert entries
        assert [entry for entry in entries if not re.search(r"[^.][.]$", entry)] == [], name


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str) -> None:
    done = provision(name, "--help")
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.startswith(f"Usage: provision {name}")
    assert re.search(rf"Examples:\n(.*\n)*.*provision {name}", done.stdout), done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert "\\b" not in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_example_is_a_command_line_that_is_understood(name: str, tmp_path: Path) -> None:
    examples = help_of(name).partition("Examples:\n")[2]
    lines = re.findall(r"provision ([^&|>#)\n]+)", examples)
    assert lines
    (tmp_path / "provision.yaml").touch()
    with chdir(tmp_path):
        for line in lines:
            verb, *arguments = shlex.split(line)
            app.commands[verb].make_context(verb, arguments)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_does(name: str) -> None:
    for parameter in app.commands[name].params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name
            assert parameter.help.endswith("."), parameter.help


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"run", "schema", "completion"}))
def test_every_command_that_says_something_can_say_it_as_json(name: str) -> None:
    command = app.commands[name]
    for verb in command.commands.values() if isinstance(command, click.Group) else [command]:
        (option,) = (parameter for parameter in verb.params if parameter.name == "output_format")
        assert {"text", "json"} <= set(option.type.choices)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["aply"], "No such command 'aply'. Did you mean 'apply'?"),
        (["lnt", "x.yaml"], "Did you mean 'lint'?"),
        (["frobnicate"], "No such command 'frobnicate'."),
        (["destory"], "No such command 'destory'. Did you mean 'destroy'?"),
        (["stat"], "No such command 'stat'. Did you mean 'status'?"),
        (["explan", "PKG001"], "No such command 'explan'. Did you mean 'explain'?\n"),
        (["facts", "lst"], "No such command 'lst'. Did you mean 'list'?"),
        (["facts", "L4"], "To look up a fact, run: provision facts why L4"),
        (["report", "reprro"], "No such command 'reprro'. Did you mean 'repro'?"),
        (["probe", "exprt"], "No such command 'exprt'. Did you mean 'export'?"),
        (["sandbox", "fualts"], "No such command 'fualts'. Did you mean 'faults'?"),
        (["--verson"], "No such option '--verson'. Did you mean '--version'?"),
        (["apply", "--ys"], "No such option '--ys'. Did you mean '--yes'?"),
        (["lock", "--up"], "No such option '--up'. Did you mean '--upgrade'?\n"),
        (["init", "--until", "x"], "No such option '--until'.\n"),
        (["apply", "--force"], "No such option '--force'.\n"),
        (["lint", "--\x1b]0;x\x07"], r"No such option '--\x1b]0;x\x07'."),
        (["apply", "--no-verify"], "No such option '--no-verify'.\n"),
        (["run", "--no-monitr", "--", "true"], "Did you mean '--no-monitor'?"),
        (["lint", "--output-format", "xml"], "is not one of 'text', 'concise', 'json'"),
        (["lock", "a.yaml", "b.yaml"], "unexpected extra argument"),
        (
            ["apply", "--lock-timeout", "-1"],
            "'--lock-timeout': '-1' is not a number that is at least 0.",
        ),
        (["apply", "--lock-timeout", "nan"], "'nan' is not a number that is at least 0."),
        (["suggest", "--most", "1.5"], "'1.5' is not a whole number from 1 to 20."),
        (["sandbox", "up", "--port", "70000"], "'70000' is not a whole number from 0 to 65535."),
        (["completion", "tcsh"], "'bash', 'zsh', 'fish'"),
        (["run", "spec.yaml"], "put it after --"),
        (["run", "a.yaml", "b.yaml", "--", "true"], "unexpected extra argument (b.yaml)"),
        (["run", "spec.yaml", "--"], "no program was given"),
        (["run", "spec.yaml", "--target", "--", "true"], "Option '--target' requires an argument"),
        (["run", "spec.yaml", "--targt", "local", "--", "true"], "No such option '--targt'"),
    ],
)
def test_what_is_mistyped_is_exit_2_with_the_nearest_word(
    arguments: list[str], message: str
) -> None:
    done = provision(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "understood"),
    [
        ("-- echo a -- b", ("provision.yaml", None, ("echo", "a", "--", "b"))),
        ("-- env -- echo hi", ("provision.yaml", None, ("env", "--", "echo", "hi"))),
        (
            "a.yaml -- pytest --target x --help",
            ("a.yaml", None, ("pytest", "--target", "x", "--help")),
        ),
        ("a.yaml --target=local -- true", ("a.yaml", "local", ("true",))),
        ("-t local a.yaml -- true", ("a.yaml", "local", ("true",))),
        ("a.yaml --target local -- --version", ("a.yaml", "local", ("--version",))),
    ],
)
def test_what_stands_after_the_first_two_dashes_is_the_programs(
    arguments: str, understood: tuple[str, str | None, tuple[str, ...]], tmp_path: Path
) -> None:
    (tmp_path / "provision.yaml").touch()
    with chdir(tmp_path):
        context = app.commands["run"].make_context("run", arguments.split())
    assert (str(context.params["spec"]), context.params["target"], context.obj) == understood


def test_help_of_run_is_ours_before_the_dashes_only() -> None:
    assert provision("run", "spec.yaml", "--help").stdout.startswith(
        "Usage: provision run [OPTIONS] [SPEC] -- PROGRAM [ARGUMENT]..."
    )


def test_the_version_and_the_module_are_the_command() -> None:
    from provision import __version__

    done = provision("--version")
    assert (done.returncode, done.stdout) == (0, f"provision, version {__version__}\n")


def test_without_words_the_help_is_shown() -> None:
    done = provision()
    assert "Usage: provision" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
