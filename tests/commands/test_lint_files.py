"""Files to lint: folders, patterns, standard input, and what is skipped among them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from provision.commands.lint_files import find_files
from tests import fork_server
from tests.commands.test_lint_forms import BAD, FIXED, GOOD, lint, write
from tests.rules.notebooks import to_notebook

FOREIGN = "apiVersion: v1\nkind: Pod\n"


def put(folder: Path, *names: str, text: str = BAD) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    put(tmp_path, "specs/a.yaml", "specs/deep/b.yml", "specs/.hidden/c.yaml", "specs/n.txt")
    put(tmp_path, "specs/.d.yaml", "specs/node_modules/e.yaml", "specs/env/f.yaml")
    (tmp_path / "specs/env/pyvenv.cfg").touch()
    (tmp_path / "specs/loop").symlink_to(tmp_path / "specs")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_folder_has_its_yaml_files(tree: Path) -> None:
    files, unmatched = find_files([Path("specs"), Path("specs/a.yaml"), Path("gone.yaml")])
    assert [(str(path), named) for path, named in files] == [
        ("specs/a.yaml", True),
        ("specs/deep/b.yml", False),
        ("gone.yaml", True),
    ]
    assert unmatched == ()


def test_a_pattern_matches_names(tree: Path) -> None:
    found = {
        word: [str(path) for path, named in find_files([Path(word)])[0] if not named]
        for word in ("specs/*.yaml", "specs/**/b.y?l", "spec[s]/a.yaml")
    }
    assert found["specs/*.yaml"] == ["specs/a.yaml"]
    assert "specs/deep/b.yml" in found["specs/**/b.y?l"]
    assert found["spec[s]/a.yaml"] == ["specs/a.yaml"]


def test_a_name_with_signs_of_a_pattern_is_a_name(tree: Path) -> None:
    put(tree, "a[1]*.yaml")
    assert find_files([Path("a[1]*.yaml")]) == (((Path("a[1]*.yaml"), True),), ())


def test_what_matches_no_file_is_an_error_and_the_rest_is_linted(tree: Path) -> None:
    (tree / "empty").mkdir()
    done = lint(tree, "empty", "x*.yaml", "specs/a.yaml")
    assert done.returncode == 2
    assert "PKG001" in done.stdout
    assert "error: the folder empty has no *.yaml file" in done.stderr
    assert "error: no file matches the pattern x*.yaml" in done.stderr


def test_foreign_files_are_judged_by_name_and_skipped_in_a_folder(tree: Path) -> None:
    put(tree, "specs/pod.yaml", text=FOREIGN)
    put(tree, "specs/provision-x.yaml", text="- a\n")
    put(tree, "specs/a.yaml", "specs/deep/b.yml", text=GOOD + "apiVersion: provision/v1\n")
    for word in ("specs", "specs/**/*.y*ml"):
        done = lint(tree, word)
        assert done.returncode == 1
        assert "YML008" in done.stdout
        assert "skipped specs/pod.yaml: it is not a spec" in done.stderr
    named = lint(tree, "specs/pod.yaml")
    assert named.returncode == 1
    assert "error: specs/pod.yaml is not a spec" in named.stderr
    both = lint(tree, "specs/pod.yaml", "gone.yaml")
    assert both.returncode == 2


def test_many_skipped_files_are_counted(tree: Path) -> None:
    put(tree, *(f"pods/{number}.yaml" for number in range(30)), text=FOREIGN)
    done = lint(tree, "pods")
    assert done.returncode == 0
    assert done.stderr.count("skipped pods/") == 10
    assert "skipped 20 more files that are not specs" in done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_without_permission(tree: Path) -> None:
    (tree / "specs/a.yaml").chmod(0)
    assert lint(tree, "specs/a.yaml").returncode == 2


def stdin(folder: Path, text: bytes, *words: str) -> subprocess.CompletedProcess[bytes]:
    line = [*fork_server.ARGV, "lint", *words]
    return subprocess.run(line, cwd=folder, input=text, capture_output=True, timeout=600)


def test_standard_input_has_a_name_for_configuration_and_extends(tmp_path: Path) -> None:
    put(tmp_path, "team/base.yaml", text="packages: [torch, transformers==5.13.1]\n")
    put(tmp_path, "team/provision.toml", text='[lint.severity]\nPKG001 = "warning"\n')
    text = b'extends: base.yaml\ngpu: none\npython: "3.11"\n'
    words = ("-", "--stdin-filename", "team/new.yaml", "--output-format", "concise")
    done = stdin(tmp_path, text, *words)
    assert (done.returncode, done.stdout.split(b" ")[1]) == (0, b"warning")
    assert done.stdout.startswith(b"team/base.yaml:1:")
    assert not (tmp_path / "team/new.yaml").exists()


@pytest.mark.parametrize("text", [b"", b"\xff", b"a" * ((1 << 20) + 1), b"\x00\x01"])
def test_hostile_standard_input(tmp_path: Path, text: bytes) -> None:
    done = stdin(tmp_path, text, "-")
    assert done.returncode in (1, 2)
    assert b"Traceback" not in done.stderr
    assert b"stdin.yaml" in done.stdout + done.stderr


def test_standard_input_is_shown_as_a_diff_and_never_written(tmp_path: Path) -> None:
    write(tmp_path, stdin="kept\n")
    done = stdin(tmp_path, BAD.encode(), "-", "--diff")
    assert f"+{FIXED.splitlines()[2]}".encode() in done.stderr
    assert (tmp_path / "stdin.yaml").read_text() == "kept\n"
    refused = stdin(tmp_path, BAD.encode(), "-", "--fix")
    assert refused.returncode == 2
    assert b"use --diff" in refused.stderr
    assert stdin(tmp_path, b"", "a.yaml", "--stdin-filename", "b.yaml").returncode == 2


def test_a_folder_that_may_not_be_searched_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed/hidden.yaml").touch()
    (tmp_path / "spec.yaml").touch()
    tmp_path.chmod(0o755)
    (tmp_path / "closed").chmod(0)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.chdir(tmp_path)
            if os.getuid() == 0:
                os.setuid(65534)
            (files, _) = find_files([Path()])
            code = 0 if [file.path.name for file in files] == ["spec.yaml"] else 1
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    (tmp_path / "closed").chmod(0o755)


def test_a_notebook_on_standard_input_is_checked_as_a_notebook(tmp_path: Path) -> None:
    text = to_notebook("!pip instal einops==0.8.0\n").encode()
    done = stdin(tmp_path, text, "-", "--output-format", "concise")
    assert done.stdout.startswith(b"stdin.ipynb:cell 1:1:2: error NTB014")


def test_code_that_does_not_exist_is_a_finding(tmp_path: Path) -> None:
    spec = 'gpu: none\npython: "3.11"\npackages: [numpy]\ncode: ./src\n'
    spec += "verify: {command: [python, train.py]}\n"
    (tmp_path / "a.yaml").write_text(spec)
    words = "a.yaml", "--output-format", "concise"
    assert lint(tmp_path, *words).stdout.startswith("a.yaml:4:7: error REF006 ")
    (tmp_path / "src").mkdir()
    done = lint(tmp_path, *words)
    assert (done.returncode, done.stdout[:34]) == (0, "a.yaml:5:19: warning REF007 verify")
    (tmp_path / "src/train.py").touch()
    assert lint(tmp_path, *words).stdout.count("REF00") == 0
