"""Extended files are merged under a spec, and every value keeps its own file."""

import pytest

from provision.assets import list_builtin_profiles
from provision.diagnostics import RouteLocation
from provision.source import FINDING_KINDS

OK = 'gpu: L4\npython: "3.12"\npackages: [torch]\n'


def test_maps_merge_packages_merge_by_name_other_lists_replace_and_null_removes(folder):
    folder.write(
        "base.yaml",
        'gpu: T4\npython: "3.12"\ncuda: "12.8"\nsystem_packages: [git, ffmpeg]\nenv: {A: '
        "base, B: base, C: base}\n"
        "packages:\n  - torch==2.11.*\n  - {name: My_Lib, version: '>=1'}\n  - accelerate\n",
    )
    linted = folder.lint(
        "extends: base.yaml\ncuda:\nsystem_packages: [curl]\nenv: {B: own, C: "
        "null}\npackages: [peft, 'torch[x]>=2.12', my.lib]\ncost: {limit_per_hour: 3}\n"
    )
    assert linted.findings == ()
    data = linted.source.data
    assert data["gpu"] == "T4"
    assert "cuda" not in data
    assert data["system_packages"] == ["curl"]
    assert data["env"] == {"A": "base", "B": "own"}
    assert data["packages"] == ["torch[x]>=2.12", "my.lib", "accelerate", "peft"]


def test_null_removes_nothing_where_nothing_is_extended(lint):
    assert lint("gpu:\npython: '3.12'\npackages: []\n").names == ["wrong-type"]


def test_a_finding_in_an_inherited_value_points_into_the_file_that_holds_it(folder):
    folder.write("shared/base.yaml", "gpu: L4\npython: 3.10\npackages: [torch, 'x=>1']\n")
    linted = folder.lint("extends: shared/base.yaml\npackages: ['numpy=>1']\n")
    lost = linted.one("types-lost")
    span = linted.source.span(lost.where)
    assert span.file == str(folder.path / "shared" / "base.yaml")
    assert linted.at(lost) == "2:9 3.10"
    assert linted.source.file(("python",)) == span.file
    assert [linted.at(finding) for finding in linted.findings if finding.name == "bad-format"] == [
        "3:19 'x=>1'",
        "2:12 'numpy=>1'",
    ]


def test_a_file_that_is_extended_is_never_edited(folder):
    folder.write("base.yaml", "gpu: L4\npython: 3.10\npackages: [torch]\n")
    linted = folder.lint("extends: base.yaml\n")
    assert linted.one("types-lost").fix is None
    assert not linted.source.is_editable(("python",))
    assert linted.source.is_editable(("extends",))


def test_a_chain_is_followed_relative_to_each_file(folder):
    folder.write("a/one.yaml", "extends: ../b/two.yaml\npython: '3.12'\n")
    folder.write("b/two.yaml", "gpu: L4\npython: '3.11'\npackages: [torch]\n")
    linted = folder.lint("extends: a/one.yaml\n")
    assert linted.findings == ()
    assert linted.spec.python == "3.12"
    assert linted.spec.extends == "a/one.yaml"
    assert list(linted.source.files) == [
        str(folder.path / name) for name in ("spec.yaml", "a/one.yaml", "b/two.yaml")
    ]


def test_findings_about_the_text_of_an_extended_file_point_into_it(folder):
    folder.write("base.yaml", OK + "env: {A: x, A: y}\n")
    linted = folder.lint("extends: base.yaml\n")
    assert linted.source.span(linted.one("duplicate-key").where).file.endswith("base.yaml")
    assert linted.at(linted.one("duplicate-key")) == "4:13 A"


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd",
        "../outside.yaml",
        "a/../../outside.yaml",
        "link.yaml",
        "linked/x.yaml",
        "C:/x.yaml",
        "\\\\host\\x.yaml",
        "''",
        '"a\\0b"',
    ],
)
def test_nothing_outside_the_root_is_read(folder, name):
    outside = folder.path.parent / "outside.yaml"
    outside.write_text(OK)
    (folder.path.parent / "x.yaml").write_text(OK)
    (folder.path / "link.yaml").symlink_to(outside)
    (folder.path / "linked").symlink_to(folder.path.parent)
    (folder.path / "a").mkdir()
    linted = folder.lint(f"extends: {name}\n")
    assert linted.names == ["extends-outside-root"]
    assert linted.at(linted.findings[0]).startswith("1:10 ")
    assert list(linted.source.files) == [str(folder.path / "spec.yaml")]


def test_links_inside_the_root_are_followed(folder):
    folder.write("real/base.yaml", OK)
    (folder.path / "link.yaml").symlink_to(folder.path / "real" / "base.yaml")
    assert folder.lint("extends: link.yaml\n").findings == ()


def test_a_file_is_told_from_another_of_the_same_shown_name(folder):
    folder.write("deep/er/x", "")
    folder.write("deep/spec.yaml", OK)
    (folder.path / "way").symlink_to(folder.path / "deep" / "er")
    linted = folder.lint("extends: way/../spec.yaml\nname: child\n")
    assert linted.spec.name == "child"
    assert linted.spec.gpu.type == "L4"


@pytest.mark.parametrize(
    ("files", "name", "words"),
    [
        ({}, "extends-missing", "nowhere.yaml"),
        ({"nowhere.yaml": "extends: spec.yaml\n"}, "extends-cycle", "spec.yaml -> "),
        ({"nowhere.yaml": "extends: nowhere.yaml\n"}, "extends-cycle", "nowhere.yaml -> "),
        ({"nowhere.yaml": OK + "---\n" + OK}, "extends-unusable", "2 documents"),
        ({"nowhere.yaml": "- a\n"}, "extends-unusable", "no mapping"),
        ({"nowhere.yaml": "a: [\n"}, "extends-unusable", "no mapping"),
        ({"nowhere.yaml": b"a: \xff"}, "extends-unusable", "no mapping"),
        ({"nowhere.yaml": OK + "#" * 2**20}, "extends-missing", "larger"),
    ],
)
def test_a_file_that_cannot_be_extended_is_a_finding_and_nothing_is_called_missing(
    folder, files, name, words
):
    for other, content in files.items():
        folder.write(other, content)
    linted = folder.lint("extends: nowhere.yaml\n")
    assert words in linted.one(name).message
    assert "missing-key" not in linted.names
    assert linted.spec is None


def test_a_file_may_not_extend_itself(folder):
    assert folder.lint("extends: spec.yaml\n").names == ["extends-cycle"]


def test_chains_have_an_end(folder):
    for number in range(9):
        folder.write(f"{number}.yaml", f"extends: {number + 1}.yaml\n")
    folder.write("9.yaml", OK)
    assert folder.lint("extends: 1.yaml\n").spec is None
    assert "extends-limit" in folder.lint("extends: 1.yaml\n").names
    assert folder.lint("extends: 2.yaml\n").findings == ()


def test_all_files_together_have_a_limit(folder):
    folder.write("a.yaml", "extends: b.yaml\n" + "#" * (2**20 - 100))
    folder.write("b.yaml", OK + "#" * (2**20 - 100))
    assert folder.lint("extends: a.yaml\n#" + "#" * 10).findings == ()
    assert "extends-limit" in folder.lint("extends: a.yaml\n#" + "#" * 1000).names


def test_an_unknown_profile_names_those_that_there_are(lint):
    finding = lint("extends: builtin:no-such-profile\n").one("extends-missing")
    assert "builtin:no-such-profile" in finding.message
    for name in list_builtin_profiles()[:1]:
        assert "builtin:" in finding.help, name


@pytest.mark.parametrize("name", list_builtin_profiles())
def test_every_profile_can_be_extended(lint, name):
    linted = lint(f'extends: builtin:{name}\ngpu: L4\npython: "3.12"\npackages: []\nname: mine\n')
    assert linted.findings == ()
    assert f"builtin:{name}" in linted.source.files


def test_the_wrong_type_of_extends_is_told_by_its_shape(lint):
    linted = lint(OK + "extends: [a.yaml]\n")
    assert linted.names == ["wrong-type"]
    assert linted.source.span(RouteLocation(("extends",))).start.line == 4


def test_every_kind_of_finding_about_extends_has_an_id():
    assert [finding.id for finding in FINDING_KINDS if finding.name.startswith("extends")] == [
        "REF001",
        "REF002",
        "REF003",
        "REF004",
        "REF005",
    ]
