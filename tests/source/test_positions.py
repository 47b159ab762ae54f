"""Every value and key of a spec is found again at its characters, whatever stands before them."""

import pytest

from provision.diagnostics import Position, RouteLocation, RoutePart

SPEC = """# ünïcödé ☃ 🤗
name: "naïve-🤗"   # 🤗🤗
gpu: {type: 'L4', count: 2}
packages:
  # first
  - torch==2.13.*
  - {name: "datasets", version: ">=3"}

env:
  GRÜSSE: "\U0001f600"
  EMPTY:
  TEXT: |
    one 🤗
    # two

# behind
cuda: !!str "12.8"
python: &py
  "3.12"
last: end"""

PLACES = {
    ("name",): (2, 7, '"naïve-🤗"'),
    ("gpu",): (3, 6, "{type: 'L4', count: 2}"),
    ("gpu", "type"): (3, 13, "'L4'"),
    ("gpu", "count"): (3, 26, "2"),
    ("packages", 0): (6, 5, "torch==2.13.*"),
    ("packages", 1): (7, 5, '{name: "datasets", version: ">=3"}'),
    ("packages", 1, "version"): (7, 33, '">=3"'),
    ("env", "GRÜSSE"): (10, 11, '"\U0001f600"'),
    ("env", "EMPTY"): (11, 9, ""),
    ("env", "TEXT"): (12, 9, "|\n    one 🤗\n    # two"),
    ("cuda",): (17, 13, '"12.8"'),
    ("python",): (19, 3, '"3.12"'),
    ("last",): (20, 7, "end"),
}


@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "bom"])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
def test_values_are_found_at_their_characters(lint, ending, mark):
    source = lint((mark + SPEC).replace("\n", ending)).source
    text = source.files[source.name]
    for route, (line, column, shown) in PLACES.items():
        span = source.span(RouteLocation(route))
        assert (span.start.line, span.start.column) == (line, column), route
        assert text[span.start.offset : span.end.offset] == shown.replace("\n", ending), route
        if isinstance(route[-1], str):
            key = source.span(RouteLocation(route, RoutePart.KEY))
            assert text[key.start.offset : key.end.offset] == route[-1]


def test_a_block_ends_before_the_blank_lines_and_comments_behind_it(lint):
    source = lint(SPEC).source
    assert source.span(RouteLocation(("packages",))).end.line == 7
    assert source.span(RouteLocation(("env",))).end.line == 14


def test_line_separators_of_unicode_are_no_lines(lint):
    source = lint("a: 'x\u2028y\u0085z'\nb: 1\n").source
    assert source.span(RouteLocation(("b",))).start == Position(2, 4, 14)


def test_what_does_not_exist_falls_back_to_the_deepest_that_does(lint):
    source = lint("gpu: {type: L4}\n").source
    for route in [("gpu", "count"), ("gpu", "count", 3)]:
        for at in RoutePart:
            assert source.span(RouteLocation(route, at)) == source.span(RouteLocation(("gpu",)))
    assert source.span(RouteLocation(("nothing",))).start.offset == 0


def test_the_key_of_the_document_is_its_first_key(lint):
    source = lint("# comment\n\ngpu: L4\ncuda: none\n").source
    span = source.span(RouteLocation((), RoutePart.KEY))
    assert (span.start.line, span.start.column, span.end.column) == (3, 1, 4)


def test_an_alias_stands_where_it_is_used_and_names_its_anchor(lint):
    source = lint("x: &x 3.10\npython: *x\n").source
    span = source.span(RouteLocation(("python",)))
    assert (span.start.line, span.start.column, span.end.column) == (2, 9, 11)
    (related,) = source.related(RouteLocation(("python",)))
    assert related.text == "&x is defined here"
    assert (
        source.files[source.name][related.where.start.offset : related.where.end.offset] == "3.10"
    )


def test_what_is_inside_an_aliased_mapping_stands_at_its_definition(lint):
    source = lint("x: &x\n  a: 1\ny: *x\n").source
    assert source.span(RouteLocation(("y", "a"))).start.line == 2
    assert [(r.where.start.line, r.text) for r in source.related(RouteLocation(("y", "a")))] == [
        (3, "used here as *x")
    ]


def test_a_merged_value_stands_where_it_comes_from(lint):
    source = lint("x: &x {a: 1}\ny:\n  <<: *x\n  b: 2\n").source
    span = source.span(RouteLocation(("y", "a"), RoutePart.KEY))
    assert (span.start.line, span.start.column) == (1, 8)
    assert (3, "merged in here") in [
        (r.where.start.line, r.text) for r in source.related(RouteLocation(("y", "a")))
    ]


def test_the_authors_own_text_is_kept(lint):
    source = lint("python: 3.10\ncuda: '12.80'\ngpu: {type: L4}\n").source
    assert (source.text(("python",)), source.is_plain(("python",))) == ("3.10", True)
    assert (source.text(("cuda",)), source.is_plain(("cuda",))) == ("12.80", False)
    assert source.text(("gpu",)) is None
    assert source.text(("nothing",)) is None
