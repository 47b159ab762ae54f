"""Standard output and standard error: JSON alone, text for people, and streams that break."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from provision.adapters import RealSystem
from provision.cli.console import print_known_findings
from provision.commands.shared.load import load_spec
from provision.diagnostics import Diagnostic, RouteLocation, Severity
from tests.rig import Bench, small_spec

ESC = "\x1b["


def shell(bench: Bench, script: str, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run a bash script with the command in `$provision`; its last line is the last exit codes."""
    arguments = " ".join(bench.argv())
    text = f"provision='{arguments}'; {script}; echo \"${{PIPESTATUS[@]}}\""
    return subprocess.run(
        ["bash", "-c", text],
        cwd=bench.folder,
        env=bench.environment(**changes),
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_json_stands_alone_on_standard_output(bench: Bench) -> None:
    bench.spec(small_spec("alpha"))
    documents = {}
    for arguments in (
        ("init",),
        ("lint", "spec.yaml"),
        ("lock", "spec.yaml"),
        ("lock", "spec.yaml", "--check"),
        ("plan", "spec.yaml"),
        ("apply", "spec.yaml", "--yes"),
        ("status", "spec.yaml"),
        ("verify", "spec.yaml"),
        ("verify", "spec.yaml", "--only", "P02"),
        ("report", "spec.yaml"),
        ("destroy", "spec.yaml", "--yes"),
    ):
        done = bench.run(*arguments, "--output-format", "json")
        assert done.returncode == 0, (arguments, done.stderr)
        documents[arguments] = json.loads(done.stdout)
    assert all(
        document.get("version") == 1
        for arguments, document in documents.items()
        if arguments[0] != "report"
    )
    assert documents["report", "spec.yaml"]["schema"] == "provision.report/1"
    assert documents["apply", "spec.yaml", "--yes"]["results"][0]["verdict"] == "verified"
    assert documents["status", "spec.yaml"]["targets"][0]["condition"] == "current"
    assert json.loads(bench.run("schema").stdout)["$schema"].startswith(
        "http://json-schema.org/draft-07"
    )


def test_progress_and_errors_go_to_standard_error(bench: Bench) -> None:
    bench.spec(small_spec("alpha"))
    done = bench.run("apply", "spec.yaml", "--yes", "--output-format", "json")
    assert "locking" in done.stderr
    assert "verifying" in done.stderr
    for arguments in (
        ("lock", "nowhere.yaml"),
        ("apply", "spec.yaml", "--target", "nowhere"),
        ("report", "nowhere.json"),
        ("verify", "spec.yaml", "--only", "X99"),
    ):
        failed = bench.run(
            *arguments, "--output-format", "json", *(["--yes"] if arguments[0] == "apply" else [])
        )
        assert failed.returncode == 2, arguments
        error = json.loads(failed.stdout)["error"]
        assert error["exit_code"] == 2, arguments
        assert error["what"] in failed.stderr, arguments


@pytest.mark.parametrize(
    "arguments",
    [
        ("apply", "--nonsense", "--output-format=json"),
        ("apply", "--output-format", "text", "--output-format", "json"),
    ],
)
def test_words_that_are_not_understood_are_told_as_json_too(
    bench: Bench, arguments: tuple[str, ...]
) -> None:
    done = bench.run(*arguments)
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["what"] in done.stderr


def test_json_after_the_dashes_is_the_programs(bench: Bench) -> None:
    bench.spec(small_spec("alpha"))
    done = bench.run("run", "spec.yaml", "--", "true", "--output-format", "json")
    assert done.returncode != 0
    assert done.stdout == ""


def test_findings_that_stop_a_command_are_told_with_the_error(bench: Bench) -> None:
    bench.spec("gpu: none\npython: 3.10\npackages: [alpha]\n")
    done = bench.run("plan", "spec.yaml", "--output-format", "json")
    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert (document["error"]["what"], document["error"]["exit_code"]) == ("the spec has errors", 1)
    assert document["diagnostics"][0]["file"] == "spec.yaml"


def test_a_file_that_cannot_be_read_hides_no_findings_of_others(bench: Bench) -> None:
    bench.spec("gpu: none\npython: 3.10\npackages: [alpha]\n")
    done = bench.run("lint", "nowhere.yaml", "spec.yaml", "--output-format", "json")
    assert done.returncode == 2
    document = json.loads(done.stdout)
    assert [error["what"] for error in document["errors"]] == ["cannot read nowhere.yaml"]
    assert {finding["file"] for finding in document["diagnostics"]} == {"spec.yaml"}
    text = bench.run("lint", "spec.yaml", "nowhere.yaml")
    assert text.returncode == 2
    assert "spec.yaml:2" in text.stdout
    assert "cannot read nowhere.yaml" in text.stderr


def test_an_encoding_that_cannot_say_a_name_is_no_bug(bench: Bench) -> None:
    bench.spec(small_spec("alpha"), "sp\u00e9c.yaml")
    for arguments in (
        ("lock", "sp\u00e9c.yaml"),
        ("lock", "sp\u00e9c.yaml", "--check"),
        ("lint", "n\u00f6.yaml"),
    ):
        done = bench.run(*arguments, PYTHONIOENCODING="ascii")
        assert done.returncode in (0, 1, 2), done.stderr
        assert "\\xe9" in done.stdout or "\\xf6" in done.stderr, arguments


@pytest.mark.long
def test_reports_of_two_targets_are_one_document_and_two_pages(bench: Bench) -> None:
    bench.spec(
        small_spec(
            "alpha",
            extra="targets: {one: {kind: local}, two: {kind: local}, away: {kind: colab, "
            "runtime: '2026.07', isolation: venv}}\n",
        )
    )
    assert (
        bench.run("apply", "spec.yaml", "--target", "one", "--target", "two", "--yes").returncode
        == 0
    )
    both = bench.run("report", "spec.yaml", "--output-format", "json")
    assert [document["schema"] for document in json.loads(both.stdout)["reports"]] == [
        "provision.report/1"
    ] * 2
    one = bench.run("report", "spec.yaml", "--target", "one", "--output-format", "json")
    assert json.loads(one.stdout)["schema"] == "provision.report/1"
    refused = bench.run("report", "spec.yaml", "--html", "page.html")
    assert refused.returncode == 2
    assert "select one target with --target" in refused.stderr
    assert not (bench.folder / "page.html").exists()
    assert (
        bench.run("report", "spec.yaml", "--target", "two", "--html", "page.html").returncode == 0
    )
    assert (bench.folder / "page.html").exists()
    standing = bench.run("status", "spec.yaml")
    assert "away         colab, absent\n" in standing.stdout, standing.stderr


def test_what_is_to_be_copied_is_quoted(bench: Bench) -> None:
    bench.spec(small_spec("alpha"), "my spec.yaml")
    assert "provision lock 'my spec.yaml'" in bench.run("status", "my spec.yaml").stdout
    assert "provision apply 'my spec.yaml'" in bench.run("report", "my spec.yaml").stderr
    assert (
        "provision lock 'my spec.yaml'"
        in bench.run("plan", "my spec.yaml", "--out", "p.json").stderr
    )
    assert bench.run("lock", "my spec.yaml").returncode == 0
    assert (
        "--plan 'my plan.json'" in bench.run("plan", "my spec.yaml", "--out", "my plan.json").stderr
    )
    assert "provision apply 'my spec.yaml'" in bench.run("run", "my spec.yaml", "--", "true").stderr


def test_findings_are_json_even_when_they_are_errors(bench: Bench) -> None:
    bench.spec("gpu: none\npython: 3.10\npackages: [alpha]\n")
    done = bench.run("lint", "spec.yaml", "--output-format", "json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["diagnostics"]
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [
        ({"NO_COLOR": "", "FORCE_COLOR": "1"}, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, False),
        ({"NO_COLOR": "", "TERM": "dumb"}, False),
    ],
    ids=["forced", "refused and forced", "a pipe", "a dumb terminal"],
)
def test_colours_are_used_where_they_are_wanted(
    bench: Bench, variables: dict[str, str], coloured: bool
) -> None:
    bench.spec("gpu: none\npython: 3.10\npackages: [alpha]\n")
    done = bench.run("lint", "spec.yaml", **variables)
    assert done.returncode == 1
    assert (ESC in done.stdout) is coloured
    failed = bench.run("apply", "spec.yaml", "--yes", **variables)
    assert (ESC in failed.stderr) is coloured


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    "arguments",
    [
        "schema",
        "--help",
        "--version",
        "lint spec.yaml",
        "completion bash",
        "plan spec.yaml --output-format json",
    ],
)
def test_a_reader_that_goes_away_is_no_error_of_ours(bench: Bench, arguments: str) -> None:
    bench.spec(small_spec("alpha"))
    done = shell(bench, f"$provision {arguments} | true")
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert "BrokenPipe" not in done.stderr
    assert done.stdout.split() in (["141", "0"], ["0", "0"])


def test_a_reader_that_is_gone_before_we_begin(bench: Bench) -> None:
    done = shell(bench, "(sleep 1; $provision schema; echo $? > code) | true; sleep 3")
    assert done.stderr == ""
    assert (bench.folder / "code").read_text() == "141\n"


def test_a_reader_of_the_first_line_gets_it(bench: Bench) -> None:
    done = shell(bench, "$provision schema | head -1")
    assert done.stdout.splitlines()[0] == "{"
    assert done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("arguments", ["schema", "--version", "lint spec.yaml"])
def test_output_that_cannot_be_written_is_said(bench: Bench, arguments: str) -> None:
    bench.spec(small_spec("alpha"))
    done = shell(bench, f"$provision {arguments} > /dev/full")
    assert done.stdout.split() == ["2"]
    assert done.stderr == f"error: cannot write the output: {os.strerror(28)}\n"


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("script", "code", "message"),
    [
        ("$provision apply spec.yaml <&-", "2", "requires confirmation"),
        ("$provision lint spec.yaml <&-", "0", ""),
        ("$provision --version >&-", "0", ""),
        ("$provision lint spec.yaml >&-", "0", ""),
        ("$provision lint nowhere.yaml 2>&-", "2", ""),
        ("$provision lint nowhere.yaml <&- >&- 2>&-", "2", ""),
    ],
)
def test_closed_streams_are_no_bug(bench: Bench, script: str, code: str, message: str) -> None:
    bench.spec(small_spec("alpha"))
    done = shell(bench, script)
    assert done.stdout.splitlines()[-1] == code
    assert message in done.stderr
    assert "this is a bug" not in done.stderr


def test_an_environment_is_made_with_all_streams_closed(bench: Bench) -> None:
    bench.spec(small_spec("alpha"))
    done = shell(bench, "$provision apply spec.yaml --yes <&- >&- 2>&-")
    assert done.stdout.split() == ["0"]
    assert (
        json.loads((bench.own / "reports/spec.local/report.json").read_text())["verdict"]["result"]
        == "verified"
    )
    assert json.loads((bench.own / "state.json").read_text())["resources"]


def test_notes_that_another_command_shows_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my spec.yaml").write_text(small_spec("alpha"))
    notes = [
        Diagnostic(rule, "name", Severity.INFO, "message", RouteLocation(()))
        for rule in ("PKG021", "MEM001")
    ]
    loaded = load_spec(Path("my spec.yaml"), RealSystem())._replace(diagnostics=tuple(notes[:1]))
    print_known_findings(notes[:1], loaded)
    assert capsys.readouterr().err == "1 note (see `provision lint 'my spec.yaml'`)\n"
    print_known_findings(notes, loaded)
    assert capsys.readouterr().err == "2 notes (see `provision lock 'my spec.yaml'`)\n"
    print_known_findings([], loaded)
    assert capsys.readouterr().err == ""
