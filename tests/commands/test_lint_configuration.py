"""The configuration of a project for `lint`, and the options that precede it."""

from __future__ import annotations

from pathlib import Path

import pytest

from provision import __version__
from provision.adapters import RealSystem
from provision.commands.shared.configuration import matches_pattern, read_overrides
from provision.commands.shared.configuration_file import find_configuration
from provision.commands.shared.load import CheckedDocument, check_file, load_spec
from provision.diagnostics import Severity
from provision.errors import UsageError
from provision.facts import load_facts
from tests.commands.test_lint_forms import BAD, GOOD, lint, write

WARNED = f"%YAML 1.1\n---\n{GOOD}"


def check(folder: Path, text: str = BAD, **files: str) -> CheckedDocument:
    (folder / "spec.yaml").write_text(text)
    for name, content in files.items():
        (folder / f"{name}.toml").write_text(content)
    (document,) = check_file(folder / "spec.yaml", RealSystem({}), load_facts())
    return document


@pytest.mark.parametrize(
    ("file", "prefix"), [("provision", ""), ("pyproject", "[tool.provision]\n")]
)
def test_severities_and_ignores_of_both_files(tmp_path: Path, file: str, prefix: str) -> None:
    table = "tool.provision.lint" if prefix else "lint"
    text = f'{prefix}[{table}.severity]\nPKG001 = "info"\n'
    (finding,) = check(tmp_path, **{file: text}).diagnostics
    assert (finding.id, finding.severity) == ("PKG001", Severity.INFO)
    ignored = check(tmp_path, **{file: f'{prefix}[{table}]\nignore = ["PKG"]\n'})
    assert (ignored.diagnostics, ignored.suppressed) == ((), ())
    selected = check(tmp_path, **{file: f'{prefix}[{table}]\nselect = ["GPU", "PKG002"]\n'})
    assert selected.diagnostics == ()


def test_the_nearest_file_counts_up_to_the_root_of_the_repository(tmp_path: Path) -> None:
    (tmp_path / "provision.toml").write_text('[lint]\nignore = ["PKG001"]\n')
    repository = tmp_path / "repository"
    (repository / "specs").mkdir(parents=True)
    (repository / "pyproject.toml").write_text('[project]\nname = "x"\n')
    assert check(repository / "specs").diagnostics == ()
    (repository / ".git").mkdir()
    assert [item.id for item in check(repository / "specs").diagnostics] == ["PKG001"]
    (repository / "provision.toml").write_text('[lint]\nignore = ["PKG"]\n')
    assert check(repository / "specs").diagnostics == ()


def test_findings_in_certain_files_are_accepted_and_counted(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "provision.toml").write_text('[lint.per-file-ignores]\n"old/*" = ["PKG001"]\n')
    document = check(tmp_path / "old")
    assert document.diagnostics == ()
    (accepted,) = document.suppressed
    assert (accepted.finding.id, accepted.kind) == ("PKG001", "configuration")
    assert accepted.reason == "per-file-ignores of old/*"
    assert [item.id for item in check(tmp_path).diagnostics] == ["PKG001"]
    done = lint(tmp_path, "old/spec.yaml")
    assert (done.returncode, done.stdout) == (0, "No findings. 1 accepted by the configuration.\n")


@pytest.mark.parametrize(
    ("name", "pattern", "matches"),
    [
        ("a/b/c.yaml", "c.yaml", True),
        ("a/b/c.yaml", "*.yaml", True),
        ("a/b/c.yaml", "a/*.yaml", False),
        ("a/b/c.yaml", "a/**/*.yaml", True),
        ("a/c.yaml", "a/**/*.yaml", True),
        ("a/b/c.yaml", "a/**", True),
        ("a/b/c.yaml", "b/c.yaml", False),
        ("a+b.yaml", "a+b.yaml", True),
        ("aab.yaml", "a+b.yaml", False),
        ("ab.yaml", "a?.yaml", True),
        ("a\nb.yaml", "a*.yaml", True),
    ],
)
def test_patterns(name: str, pattern: str, matches: bool) -> None:
    assert matches_pattern(name, pattern) == matches


def test_apply_accepts_what_lint_accepts(tmp_path: Path) -> None:
    (tmp_path / "provision.toml").write_text('[lint.severity]\nPKG001 = "warning"\n')
    (tmp_path / "spec.yaml").write_text(BAD)
    loaded = load_spec(tmp_path / "spec.yaml", RealSystem({}))
    assert [item.severity for item in loaded.diagnostics] == [Severity.WARNING]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[lint]\nselct = []\n", ":2:1: lint.selct: unknown key selct"),
        ('[lint]\nselect = "PKG"\n', ":2:1: lint.select: expected a list of rules"),
        ('[lint]\nignore = ["PKG9"]\n', ":2:1: lint.ignore: there is no rule PKG9"),
        ('[lint]\nignore = ["SEC001"]\n', "findings of SEC001 cannot be accepted"),
        ('[lint.severity]\nGCP021 = "info"\n', "findings of GCP021 cannot be accepted"),
        ('[lint.per-file-ignores]\n"*" = ["SPC001"]\n', "findings of SPC001 cannot be accepted"),
        ('[lint]\nfail-on = "never"\n', ":2:1: lint.fail-on: never is not a severity"),
        ('[lint.severity]\nPKG = "info"\n', "there is no rule PKG"),
        ('[lint.severity]\nPKG001 = "off"\n', ":2:1: lint.severity.PKG001: off is not a severity"),
        ("lint = 1\n", ":1:1: lint: expected a table"),
        ('rules = ["./mine.py"]\n', ":1:1: rules: unknown key rules"),
        ('[lint]\nplugins = "x"\n', ":2:1: lint.plugins: unknown key plugins"),
        ('required-version = ">=900"\n', f"this is provision {__version__}, but the project"),
        ('required-version = "new"\n', "new is not a version range"),
        ("required-version = 3\n", "3 is not a version range"),
        ("[lint\n", "is not valid TOML"),
        ("\x00", "is not valid TOML"),
    ],
)
def test_mistakes_in_the_file_end_with_their_position(
    tmp_path: Path, text: str, words: str
) -> None:
    write(tmp_path, a=GOOD, b=GOOD)
    (tmp_path / "provision.toml").write_text(text)
    done = lint(tmp_path, "a.yaml", "b.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert words in " ".join(done.stderr.split())
    assert done.stderr.count("error: ") == 1


@pytest.mark.parametrize("text", ['rules = ["./mine.py"]\n', '[lint]\nplugins = ["x"]\n'])
def test_no_key_can_name_code(tmp_path: Path, text: str) -> None:
    (tmp_path / "mine.py").write_text("raise SystemExit(9)\n")
    (tmp_path / "provision.toml").write_text(text)
    with pytest.raises(UsageError) as caught:
        find_configuration(tmp_path / "spec.yaml", RealSystem({}))
    assert "cannot load code" in caught.value.why


def test_a_version_in_range_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "provision.toml").write_text(f'required-version = ">={__version__}"\n')
    assert find_configuration(tmp_path / "spec.yaml", RealSystem({})).folder == tmp_path


def test_a_configuration_that_is_not_utf_8(tmp_path: Path) -> None:
    (tmp_path / "provision.toml").write_bytes(b"\xff")
    with pytest.raises(UsageError) as caught:
        find_configuration(tmp_path / "spec.yaml", RealSystem({}))
    assert caught.value.why == "it is not UTF-8"


def test_options_precede_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "provision.toml").write_text('[lint]\nselect = ["GPU"]\nfail-on = "info"\n')
    write(tmp_path, a=BAD, warned=WARNED)
    assert lint(tmp_path, "a.yaml").returncode == 0
    assert lint(tmp_path, "a.yaml", "--select", "PKG001").returncode == 1
    assert lint(tmp_path, "a.yaml", "--select", "PKG", "--ignore", "PKG001,GPU").returncode == 0


def test_the_lowest_severity_that_fails(tmp_path: Path) -> None:
    write(tmp_path, a=WARNED)
    ids = {item.severity for item in check(tmp_path, WARNED).diagnostics}
    assert ids == {"warning"}
    assert lint(tmp_path, "a.yaml").returncode == 0
    assert lint(tmp_path, "a.yaml", "--fail-on", "warning").returncode == 1
    (tmp_path / "provision.toml").write_text('[lint]\nfail-on = "warning"\n')
    assert lint(tmp_path, "a.yaml").returncode == 1
    assert lint(tmp_path, "a.yaml", "--fail-on", "error").returncode == 0


def test_text_that_cannot_be_read_is_reported_whatever_is_selected(tmp_path: Path) -> None:
    write(tmp_path, a="gpu: [\n")
    done = lint(tmp_path, "a.yaml", "--select", "PKG")
    assert done.returncode == 1
    assert "YML001" in done.stdout
    with pytest.raises(UsageError, match="findings of YML001 cannot be ignored"):
        read_overrides([], ["PKG001, YML001"], None)
    with pytest.raises(UsageError) as caught:
        read_overrides(["PKH001"], [], None)
    assert caught.value.what == "there is no rule PKH001"
    assert "PKG" in caught.value.hint


def test_statistics_count_findings_by_rule(tmp_path: Path) -> None:
    write(tmp_path, a=BAD, b=BAD, c=WARNED)
    done = lint(tmp_path, "a.yaml", "b.yaml", "c.yaml", "--statistics")
    assert done.returncode == 1
    first, *_, last = done.stdout.splitlines()
    assert first == "2  PKG001  trainer-needs-accelerate"
    assert last.startswith("Found 2 errors")
    refused = lint(tmp_path, "a.yaml", "--statistics", "--output-format", "json")
    assert refused.returncode == 2


def test_a_changed_configuration_counts_at_once(tmp_path: Path) -> None:
    for rules in (("PKG001",), ("GPU", "CUD"), ()):
        (tmp_path / "provision.toml").write_text(f"[lint]\nignore = {list(rules)}\n")
        assert find_configuration(tmp_path / "spec.yaml", RealSystem({})).ignore == rules
