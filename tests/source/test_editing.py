"""Fixes change the characters that they name and no others."""

import time

import pytest

from provision.diagnostics import Fix, Insert, Replace, RouteLocation, RoutePart
from provision.source import apply_fixes_together

TEXT = """# head
gpu: {type: L4}   # card
packages:   # all
  - torch
  - {name: x}  # last

# behind
env:
  A: "1"  # one
requires: {}
empty: []
shared: &s
  k: v
again: *s
nested:
- - a
  - b: 1
last: {a: 1}"""


def edit(lint, text, *edits):
    source = lint(text).source
    return source.apply_fixes([Fix("t", edits)]).get(source.name)


@pytest.mark.parametrize(
    ("change", "before", "after"),
    [
        (Replace(RouteLocation(("gpu", "type")), "T4"), "{type: L4}", "{type: T4}"),
        (Replace(RouteLocation(("gpu",), RoutePart.KEY), "card"), "gpu: {", "card: {"),
        (Replace(RouteLocation(("packages", 0)), '"torch>=2"'), "- torch", '- "torch>=2"'),
        (Replace(RouteLocation(("env", "A")), "two"), '"1"  # one', "two  # one"),
        (Insert(("gpu",), "count", "2"), "{type: L4}", "{type: L4, count: 2}"),
        (Insert(("packages",), None, "numpy"), "# last\n", "# last\n  - numpy\n"),
        (Insert(("packages", 1), "version", '">=1"'), "{name: x}", '{name: x, version: ">=1"}'),
        (Insert(("env",), "B", '"2"'), "# one\n", '# one\n  B: "2"\n'),
        (Insert(("env",), "1 2", "x"), "# one\n", '# one\n  "1 2": x\n'),
        (Insert(("requires",), "driver", '">=580"'), "requires: {}", 'requires: {driver: ">=580"}'),
        (Insert(("empty",), None, "x"), "empty: []", "empty: [x]"),
        (Insert((), "name", "mine"), "last: {a: 1}", "last: {a: 1}\nname: mine"),
        (Insert(("nested",), None, "c"), "  - b: 1\n", "  - b: 1\n- c\n"),
        (Insert(("nested", 0), None, "c"), "  - b: 1\n", "  - b: 1\n  - c\n"),
        (Insert(("nested", 0, 1), "d", "2"), "  - b: 1\n", "  - b: 1\n    d: 2\n"),
    ],
)
@pytest.mark.parametrize("ending", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "bom"])
def test_an_edit_changes_what_it_names(lint, change, before, after, ending, mark):
    text = (mark + TEXT).replace("\n", ending)
    assert TEXT.count(before) == 1
    assert edit(lint, text, change) == (mark + TEXT.replace(before, after)).replace("\n", ending)


@pytest.mark.parametrize(
    "change",
    [
        Replace(RouteLocation(("shared", "k")), "w"),
        Replace(RouteLocation(("again",)), "w"),
        Replace(RouteLocation(("again", "k")), "w"),
        Replace(RouteLocation(("gpu",)), "T4"),
        Replace(RouteLocation(("nothing",)), "x"),
        Replace(RouteLocation(("packages", 0), RoutePart.KEY), "x"),
        Replace(RouteLocation(("gpu", "type")), "x\ny: z"),
        Replace(RouteLocation(("gpu", "type")), "[x"),
        Replace(RouteLocation(("gpu",), RoutePart.KEY), "env"),
        Insert(("shared",), "x", "1"),
        Insert(("again",), "x", "1"),
        Insert(("gpu",), "type", "T4"),
        Insert(("gpu",), None, "x"),
        Insert(("packages",), "x", "1"),
        Insert(("gpu", "type"), "x", "1"),
        Insert(("nothing",), "x", "1"),
        Insert(("env",), "x", "a\nb: c"),
    ],
)
def test_an_edit_that_would_do_harm_is_refused(lint, change):
    assert edit(lint, TEXT, change) is None
    assert edit(lint, TEXT, Replace(RouteLocation(("env", "A")), "x"), change) is None


def test_a_merged_value_is_not_edited(lint):
    text = "x: &x {a: 1}\ny: {<<: *x, b: 2}\n"
    assert edit(lint, text, Replace(RouteLocation(("y", "a")), "3")) is None
    assert (
        edit(lint, text, Replace(RouteLocation(("y", "b")), "3"))
        == "x: &x {a: 1}\ny: {<<: *x, b: 3}\n"
    )


def test_an_empty_value_is_set_apart_from_its_colon(lint):
    assert (
        edit(
            lint,
            "a:\nb:\n  -\n",
            Replace(RouteLocation(("a",)), "x"),
            Replace(RouteLocation(("b", 0)), "y"),
        )
        == "a: x\nb:\n  - y\n"
    )


def test_blank_lines_that_belong_to_a_text_are_not_split_off(lint):
    assert edit(lint, "a:\n  b: |+\n    x\n\nc: 1\n", Insert(("a",), "d", "1")) is None
    assert (
        edit(lint, "a:\n  b: |\n    x\n\nc: 1\n", Insert(("a",), "d", "1"))
        == "a:\n  b: |\n    x\n  d: 1\n\nc: 1\n"
    )


def test_keys_marked_with_a_question_mark_are_no_hindrance(lint):
    assert (
        edit(lint, "a:\n  ? b\n  : 1\n", Insert(("a",), "d", "1")) == "a:\n  ? b\n  : 1\n  d: 1\n"
    )


def test_a_collection_behind_its_anchor_is_not_ours_to_lengthen(lint):
    assert edit(lint, "a: &a\n  b: 1\n", Insert(("a",), "d", "1")) is None


def test_overlapping_fixes_are_dropped_and_the_first_wins(lint):
    source = lint(TEXT).source
    fixes = [
        Fix("1", (Replace(RouteLocation(("gpu", "type")), "T4"),)),
        Fix(
            "2",
            (
                Replace(RouteLocation(("gpu", "type")), "A100"),
                Replace(RouteLocation(("env", "A")), "x"),
            ),
        ),
    ]
    assert source.apply_fixes(fixes) == {source.name: TEXT.replace("L4", "T4")}
    assert source.apply_fixes(fixes[::-1]) == {
        source.name: TEXT.replace("L4", "A100").replace('"1"', "x")
    }


def test_insertions_into_one_place_stand_in_order(lint):
    source = lint(TEXT).source
    fixes = [Fix(key, (Insert(("env",), key, "x"),)) for key in ("B", "C")]
    assert source.apply_fixes(fixes)[source.name] == TEXT.replace(
        "# one\n", "# one\n  B: x\n  C: x\n"
    )
    empty = [Fix(key, (Insert(("requires",), key, "x"),)) for key in ("B", "C")]
    assert source.apply_fixes(empty)[source.name] == TEXT.replace(
        "requires: {}", "requires: {B: x}"
    )


def test_a_fix_that_breaks_the_text_does_not_take_the_others_with_it(lint):
    source = lint(TEXT).source
    fixes = [
        Fix("1", (Replace(RouteLocation(("gpu", "type")), "[x"),)),
        Fix("2", (Replace(RouteLocation(("env", "A")), "y"),)),
    ]
    assert source.apply_fixes(fixes)[source.name] == TEXT.replace('"1"', "y")


def test_fixes_of_several_documents_go_into_one_text(folder):
    first, second = folder.lint_all("a: 1\n---\nb: 1\n")
    fixes = [
        (first.source, Fix("t", (Replace(RouteLocation(("a",)), "2"),))),
        (second.source, Fix("t", (Replace(RouteLocation(("b",)), "3"),))),
    ]
    assert list(apply_fixes_together(fixes).values()) == ["a: 2\n---\nb: 3\n"]


def test_nothing_to_do_is_no_text(lint):
    assert lint(TEXT).source.apply_fixes([]) == {}


MANY = "gpu: none\nenv:\n" + "".join(f"  A{number}: {number}\n" for number in range(1200))


def fixes_of_many(*bad):
    return [
        Fix(
            "t",
            (
                Replace(
                    RouteLocation(("env", f"A{number}")), "[" if number in bad else f'"{number}"'
                ),
            ),
        )
        for number in range(1200)
    ]


@pytest.mark.long(after=2)
@pytest.mark.parametrize("bad", [(), (0,), (7, 600, 1199)])
def test_fixes_are_vetted_as_if_each_were_tried_alone(lint, bad):
    source = lint(MANY).source
    alone, fixes = lint(MANY).source, fixes_of_many(*bad)
    source.check_fixes(fixes)
    for number in (0, 1, 7, 8, 600, 1199):
        assert source.apply_fixes([fixes[number]]) == alone.apply_fixes([fixes[number]])
        assert bool(source.apply_fixes([fixes[number]])) is (number not in bad)


def test_fixes_of_one_place_are_vetted_one_after_the_other(lint):
    source = lint(TEXT).source
    fixes = [
        Fix("t", (Replace(RouteLocation(("gpu", "type")), text),)) for text in ("T4", "[", "A100")
    ]
    source.check_fixes(fixes)
    assert [bool(source.apply_fixes([fix])) for fix in fixes] == [True, False, True]


def test_many_fixes_take_no_time(lint):
    source, fixes = lint(MANY).source, fixes_of_many(3, 900)
    began = time.process_time()
    source.check_fixes(fixes)
    for fix in fixes:
        source.apply_fixes([fix])
    assert time.process_time() - began < 20
