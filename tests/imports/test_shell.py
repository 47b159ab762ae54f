"""Shell text is split into commands and words with their positions."""

from __future__ import annotations

import pytest

from provision.imports.conda_specs import parse_conda_spec
from provision.imports.install_commands import InstallCommand, RefusedCommand, read_command
from provision.imports.shell import split_commands

COMMANDS: list[tuple[str, list[list[str]]]] = [
    ("pip install a b # c", [["pip", "install", "a", "b"]]),
    ("a && b; c || d | e & f", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]),
    ('a \'b c\' "d\\"e" f\\ g', [["a", "b c", 'd"e', "f g"]]),
    ("a \\\n  b\\\nc", [["a", "bc"]]),
    ("a > out 2>&1 < in b", [["a", "b"]]),
    ("pip install numpy>=1.2,<2 x", [["pip", "install", "numpy>=1.2,<2", "x"]]),
    ("cat > r.txt <<EOF\npip install no\nEOF\nb", [["cat"], ["b"]]),
    ("(cd x && pip install y)", [["cd", "x"], ["pip", "install", "y"]]),
    ("if a; then b; else c; fi; d", [["b"], ["c"], ["d"]]),
    ("for x in 1 2; do a $x; done", [["a", "$x"]]),
    ("echo $(pip install a; b) `c` ${D}", [["echo", "$(pip install a; b)", "`c`", "${D}"]]),
    ("a 'never closed", [["a", "never", "closed"]]),
    ("a#b #c", [["a#b"]]),
    ("", []),
]
INSTALLS = [
    ("pip3.11 install x", "pip install", ["x"]),
    ("sudo -H python3 -m pip --quiet install x", "pip install", ["--quiet", "x"]),
    ("/opt/conda/bin/pip install x", "pip install", ["x"]),
    ("conda run -n train pip install x", "pip install", ["x"]),
    ("A=1 B=2 uv pip install --system x", "uv pip install", ["--system", "x"]),
    ("mamba install -y x", "mamba install", ["-y", "x"]),
    ("micromamba create -n e x", "micromamba create", ["-n", "e", "x"]),
    ("sudo apt-get -o Dpkg::Use-Pty=0 -y install x", "apt-get install", []),
]
REFUSED = [
    ("pip uninstall -y x", ""),
    ("pip -q instal x", ""),
    ("uv pip isntall x", ""),
    ("uv pip sync requirements.txt", "requirements.txt"),
    ("conda env update -f environment.yml", "environment.yml"),
    ("conda remove x", ""),
    ("apk add --no-cache x", ""),
    ("uv sync --frozen", "uv.lock"),
    ("poetry install", "pyproject.toml"),
]
OTHERS = [
    "pip list",
    "pip inspect",
    "pip",
    "pip --version",
    "apt-get update",
    "conda activate x",
    "python train.py",
    "uv run x",
    "sudo",
]
SPECS = [
    ("numpy", "numpy", ""),
    ("numpy=1.24", "numpy==1.24.*", ""),
    ("numpy==1.24.0", "numpy==1.24.0", "1.24.0"),
    ("numpy 1.24.*", "numpy==1.24.*", ""),
    ("numpy >= 1.20 , < 2", "numpy>=1.20,<2", ""),
    ("ncurses>=6.*", "ncurses>=6", ""),
    ("mkl!=2024.1.*", "mkl!=2024.1.*", ""),
    ("numpy=1.26.4=py311h64a7726_0", "numpy==1.26.4", "1.26.4"),
    ("numpy 1.26.4 py311h64a7726_0", "numpy==1.26.4", "1.26.4"),
    ("blas=*=mkl", "blas", ""),
    ("conda-forge::x[version='>=2',build=0]", "x>=2", ""),
    ("numpy=1.24|1.25", "numpy=1.24|1.25", ""),
    ("jpeg=9e", "jpeg=9e", ""),
]


@pytest.mark.parametrize(("text", "expected"), COMMANDS)
def test_text_is_split_into_commands(text: str, expected: list[list[str]]) -> None:
    commands = split_commands(text)
    assert [[word.text for word in command.words] for command in commands] == expected
    for command in commands:
        for word in command.words:
            assert word.text[:1] in text[word.start : word.end]


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("pip install $X ${Y} a$Z `b` $(c)", 5),
        ("pip install '$X' \\$Y a", 0),
        ("pip install {name} x=={version}", 2),
        ("pip install x{1,2}", 0),
    ],
)
def test_words_with_variables_are_not_known(text: str, unknown: int) -> None:
    (command,) = split_commands(text, expands_braces=True)
    assert sum(not word.is_known for word in command.words) == unknown


@pytest.mark.parametrize(
    ("text", "conditions"),
    [
        ("if a; then b; else c; fi; d", ["`a`", "not `a`", ""]),
        ("if a; then b; elif c; then d; fi", ["`a`", "`c`"]),
        ("a || b && c", ["", "`a` fails", "`a` fails"]),
        ("[ -f x ] && a; b", ["", "`[ -f x ]` succeeds", ""]),
        ("for x in y; do a; done", [""]),
    ],
)
def test_a_command_has_the_conditions_of_its_blocks(text: str, conditions: list[str]) -> None:
    assert [command.condition for command in split_commands(text)] == conditions


@pytest.mark.parametrize(("text", "program", "arguments"), INSTALLS)
def test_commands_that_install_are_recognized(
    text: str, program: str, arguments: list[str]
) -> None:
    (command,) = split_commands(text)
    install = read_command(command)
    assert isinstance(install, InstallCommand)
    assert install.program == program
    if arguments:
        assert [word.text for word in install.arguments] == arguments


@pytest.mark.parametrize(("text", "file"), REFUSED)
def test_commands_that_a_spec_cannot_contain_are_refused(text: str, file: str) -> None:
    (command,) = split_commands(text)
    refused = read_command(command)
    assert isinstance(refused, RefusedCommand)
    assert refused.file == file
    assert refused.why


@pytest.mark.parametrize("text", OTHERS)
def test_other_commands_install_nothing(text: str) -> None:
    (command,) = split_commands(text)
    assert read_command(command) is None


@pytest.mark.parametrize(("text", "requirement", "version"), SPECS)
def test_specifications_of_conda_are_translated(text: str, requirement: str, version: str) -> None:
    spec = parse_conda_spec(text)
    assert spec is not None
    assert (spec.requirement, spec.version) == (requirement, version)


@pytest.mark.parametrize("text", ["", "- x", "a b c d", "https://example.org/x.conda"])
def test_other_texts_are_not_specifications_of_conda(text: str) -> None:
    assert parse_conda_spec(text) is None
