"""YAML as we read it: the core types of 1.2, and a finding for everything else."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import provision.source
from provision.errors import SourceError
from provision.source import read_spec_file

OK = 'gpu: L4\npython: "3.12"\npackages: [torch]\n'


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("no", "no"), ("on", "on"), ("yes", "yes"), ("1:30", "1:30"), ("0644", "0644"), ("2026-11-01", "2026-11-01"), ("1_000", "1_000"), ("1.2.3", "1.2.3"),
        ("true", True), ("False", False), ("~", None), ("", None), ("null", None), ("Null", None), ("12", 12), ("-3", -3), ("0o17", 15), ("0xff", 255),
        ("3.10", 3.1), ("1e3", 1000.0), (".5", 0.5), ("+1.", 1.0), ("'12'", "12"), ('"true"', "true"), ("!!str 12", "12"), ("! 12", "12"), ("!!float 1", 1.0),
        ("!!null ''", None),
        ("12345678901234567890", 12345678901234567890), ("|\n  a\n  b\n", "a\nb\n"), (">-\n  a\n  b\n", "a b"), ("&x 5", 5), ("!!int &x 5", 5),
        ("a b # c", "a b"),
    ],
)  # fmt: skip
def test_a_scalar_means_what_yaml_1_2_says(lint, written, meant):
    value = lint(f"a: {written}\n").source.data["a"]
    assert value == meant
    assert type(value) is type(meant)


@pytest.mark.parametrize(
    ("text", "name", "place"),
    [
        ("a: 1\nb: 2\na: 3\n", "duplicate-key", "3:1 a"),
        ("a: {b: 1, 'b': 2}\n", "duplicate-key", "1:11 'b'"),
        ("a: *x\n", "alias", "1:4 *x"),
        ("a: &x [*x]\n", "alias", "1:8 *x"),
        ("a: !secret b\n", "tag", "1:4 !secret b"),
        ("a: !!python/object:os.system {}\n", "tag", "1:4 !!python/object:os.system {"),
        ("a: !!int b\n", "tag", "1:4 !!int b"),
        ("a: !!bool 1\n", "tag", "1:4 !!bool 1"),
        ("a: !!map [b]\n", "tag", "1:4 !!map ["),
        ("12: a\n", "key-not-text", "1:1 12"),
        ("true: a\n", "key-not-text", "1:1 true"),
        ("~: a\n", "key-not-text", "1:1 ~"),
        ("?\n: a\n", "key-not-text", "1:2 "),
        ("? [a]\n: b\n", "key-not-text", "1:3 [a]"),
        ("? {a: b}\n: b\n", "key-not-text", "1:3 {a: b}"),
        ("a: &x b\n*x : c\n", "key-not-text", "2:1 *x"),
        ("a: {<<: 1}\n", "merge-key", "1:9 1"),
        ("a: {<<: [{b: 1}, c]}\n", "merge-key", "1:18 c"),
        ("a: 1e999\n", "number", "1:4 1e999"),
        ("a: .inf\n", "number", "1:4 .inf"),
        ("a: -.INF\n", "number", "1:4 -.INF"),
        ("a: .nan\n", "number", "1:4 .nan"),
        ("a: 1234567890123456789012345\n", "number", "1:4 1234567890123456789012345"),
        ("a: &x 1\nb: &x 2\n", "duplicate-anchor", "2:4 &x 2"),
        ("%YAML 1.1\n---\na: no\n", "yaml-version", "1:1 %YAML 1.1"),
        ("a: b: c\n", "syntax", "1:5 :"),
        ("a:\n\t- b\n", "syntax", "2:1 \t"),
        ('a: "\\ud800"\n', "syntax", "1:7 d"),
        ("a: @b\n", "syntax", "1:4 @"),
        ("a: b\x07c\n", "control-character", "1:5 \x07"),
        ("a: b\x00c\n", "control-character", "1:5 \x00"),
        ("- a\n", "root-not-mapping", "1:1 - a"),
        ("a\n", "root-not-mapping", "1:1 a"),
        ("---\n...\n", "empty-document", "2:1 "),
    ],
)
def test_what_is_wrong_with_the_text_is_a_finding_at_its_characters(lint, text, name, place):
    linted = lint(text)
    assert linted.at(linted.one(name)) == place


def test_a_duplicate_key_names_all_its_places_and_the_last_value_holds(lint):
    linted = lint("a: 1\nb: 0\na: 2\na: 3\n")
    related = linted.one("duplicate-key").related
    assert [linted.source.span(other.where).start.line for other in related] == [1, 3]
    assert linted.source.data == {"a": 3, "b": 0}


def test_merge_keys_yield_to_own_keys_and_to_earlier_mappings(lint):
    linted = lint(
        "x: &x {a: 1, b: 1}\ny: &y {b: 2, c: 2}\nz: {<<: [*x, *y], c: 3}\nw:\n  <<: *y\n  "
        "'<<': text\n"
    )
    assert linted.source.data["z"] == {"c": 3, "a": 1, "b": 1}
    assert linted.source.data["w"] == {"<<": "text", "b": 2, "c": 2}


def test_an_alias_gives_equal_but_separate_data(lint):
    data = lint("x: &x [1, {y: 2}]\nz: *x\n").source.data
    assert data["z"] == data["x"]
    assert data["z"] is not data["x"]


def test_every_document_has_its_own_anchors_and_findings(folder):
    first, second, third = folder.lint_all("a: &x 1\n---\nb: 2\n---\nc: *x\n")
    assert first.source.data == {"a": 1}
    assert second.source.data == {"b": 2}
    assert [first.source.document, second.source.document, third.source.document] == [0, 1, 2]
    assert third.names == ["alias"]


def test_a_bracket_in_an_unquoted_value(lint):
    text = "packages: [transformers[torch], numpy]\n"
    finding = lint(text).one("syntax")
    assert finding.message == "unexpected `[` in an unquoted value"
    assert finding.help == 'put it in quotes, as in "transformers[torch]"'


def test_documents_before_a_syntax_error_are_still_read(folder):
    first, second = folder.lint_all(OK + "---\na: [\n")
    assert first.spec is not None
    assert second.names == ["syntax"]
    assert second.source.data is None


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("a: 1".encode("utf-16"), "UTF-16"),
        ("a: 1".encode("utf-16-le"), "UTF-16"),
        ("a: 1".encode("utf-16-be"), "UTF-16"),
        ("a: 1".encode("utf-32"), "UTF-32"),
        ("a: 1".encode("utf-32-le"), "UTF-32"),
        ("a: 1".encode("utf-32-be"), "UTF-32"),
        (b"a: \xe4", "0xe4"),
        (b"\xef\xbb\xbfa: \xff", "0xff"),
    ],
)
def test_only_utf_8_is_read(lint, raw, words):
    finding = lint(raw).one("encoding")
    assert words in finding.message


def test_the_place_of_a_bad_byte_is_counted_in_characters(lint):
    linted = lint("ä: ü\nb: é".encode() + b"\xff")
    assert linted.at(linted.one("encoding")) == "2:5 \ufffd"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: " + "[" * 60 + "]" * 60, "levels of nesting"),
        ("".join(f"{' ' * n}a:\n" for n in range(60)), "levels of nesting"),
        ("a: [" + "x," * 20_001 + "]", "values"),
        ("a: " + "x" * 70_000, "characters"),
        ("? " + "x" * 2_000 + "\n: 1", "characters"),
        ("---\na: 1\n" * 11, "documents"),
        ("a: &a [" + "x," * 5_000 + "]\nb: [*a, *a, *a, *a]\n", "aliases expanded"),
        (
            "a: &a " + "[" * 30 + "]" * 30 + "\nb: &b " + "[" * 30 + "*a" + "]" * 30,
            "through the alias",
        ),
    ],
)
def test_limits_are_findings(folder, text, words):
    last = folder.lint_all(text)[-1]
    assert last.source.data is None
    assert words in last.one("limit").message


def test_what_is_within_the_limits_is_read(lint):
    assert lint("a: " + "[" * 49 + "]" * 49).names == ["missing-key"] * 3 + ["unknown-key"]
    assert "limit" not in lint("a: " + "x" * 65_536).names


def test_a_file_that_is_not_there_is_an_error_with_its_name(folder, disk):
    with pytest.raises(SourceError, match=r"nowhere\.yaml") as raised:
        read_spec_file(folder.path / "nowhere.yaml", disk)
    assert raised.value.exit_code == 2
    assert raised.value.hint
    with pytest.raises(SourceError, match="directory"):
        read_spec_file(folder.path, disk)
    with pytest.raises(SourceError, match="larger"):
        read_spec_file(folder.write("big.yaml", "#" * (2**20 + 1)), disk)


def test_without_libyaml_nothing_is_read_and_the_way_out_is_named(folder):
    program = (
        "import sys, yaml; yaml.__with_libyaml__ = False\n"
        "from pathlib import Path; from provision.errors import SourceError; from "
        "provision.source import read_spec_file\n"
        "try: read_spec_file(Path(sys.argv[1]), None)\n"
        "except SourceError as error: print(error.what, error.hint)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder.write("spec.yaml", OK))],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    assert "without libyaml" in done.stdout
    assert "pip install" in done.stdout


def test_no_other_way_of_reading_yaml_is_in_use():
    package = Path(provision.source.__file__).parents[1]
    uses = {
        path.name
        for path in package.rglob("*.py")
        if re.search(
            r"yaml\.(?!parse\b|CSafeLoader|YAMLError|MarkedYAMLError|__with|[A-Z]\w*Event\b|Event\b)\w+\(",
            path.read_text(),
        )
    }
    # Of a log, which is no spec, at most 1 MiB are read, as texts only.
    assert uses == {"log_text.py"}


def test_the_root_is_the_nearest_folder_with_a_mark(folder, disk):
    assert folder.lint(OK, "a/b/spec.yaml").source.root == folder.path.resolve()
    folder.write("a/provision.toml", "")
    assert folder.lint(OK, "a/b/spec.yaml").source.root == (folder.path / "a").resolve()
