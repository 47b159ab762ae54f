"""`provision outdated`: what was withdrawn, ends soon, is behind or vulnerable; with recorded
answers over loopback.
"""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from provision.facts import load_facts
from provision.lock.outdated import list_ending
from provision.spec import Spec
from tests.rig import Bench, make_index, make_wheel, small_spec


@contextmanager
def osv(known: dict[str, list[str]], asked: list[Any], body: bytes | None = None) -> Iterator[str]:
    """Serve answers of the form of OSV's querybatch: ids by "name version", two pages for two."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            queries = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
            asked.extend(queries)
            results: list[dict[str, Any]] = []
            for query in queries:
                ids = known.get(f"{query['package']['name']} {query['version']}", [])
                place = int(query.get("page_token", 0))
                result: dict[str, Any] = {"vulns": [{"id": one} for one in ids[place : place + 1]]}
                if place + 1 < len(ids):
                    result["next_page_token"] = str(place + 1)
                results.append(result if ids else {})
            content = json.dumps({"results": results}).encode() if body is None else body
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def locked(bench: Bench, tmp_path: Path) -> Bench:
    """A lock of `lead` 1.0.0, whose index has 1.0.1, 1.0.2rc1, 1.0.9 (yanked) and 1.1.0 since."""
    wheels = tmp_path / "wheels"
    old = make_wheel(wheels, "lead", "1.0.0")
    make_index(tmp_path / "index", (old,))
    bench.spec(small_spec("lead"))
    assert bench.run("lock", "spec.yaml").returncode == 0
    newer = tuple(make_wheel(wheels, "lead", f"1.{rest}") for rest in ("0.1", "0.2rc1", "1.0"))
    make_index(tmp_path / "index", (old, *newer))
    return bench


def outdated(bench: Bench, url: str) -> tuple[int, dict[str, Any]]:
    done = bench.run("outdated", "spec.yaml", "--osv-url", url, "--output-format", "json")
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def rows(document: dict[str, Any], kind: str) -> list[tuple[str, str]]:
    return [(row["name"], row["what"]) for row in document["outdated"] if row["kind"] == kind]


def test_a_patch_release_inside_the_bounds_is_named(locked: Bench) -> None:
    asked: list[Any] = []
    with osv({}, asked) as url:
        code, document = outdated(locked, url)
    assert code == 0
    assert rows(document, "newer patch release") == [("lead 1.0.0", "1.0.1 is listed")]
    assert document["not_found"] == ["withdrawn", "end of support", "known vulnerability"]
    assert asked == [{"package": {"name": "lead", "ecosystem": "PyPI"}, "version": "1.0.0"}]


def test_bounds_of_the_spec_hold(locked: Bench) -> None:
    locked.spec(small_spec("lead==1.0.0"))
    assert locked.run("lock", "spec.yaml").returncode == 0
    with osv({}, []) as url:
        assert rows(outdated(locked, url)[1], "newer patch release") == []


def test_known_vulnerabilities_are_named_from_all_pages(locked: Bench) -> None:
    with osv({"lead 1.0.0": ["GHSA-a", "PYSEC-b"]}, []) as url:
        code, document = outdated(locked, url)
    assert code == 0
    assert rows(document, "known vulnerability") == [("lead 1.0.0", "GHSA-a, PYSEC-b")]


def test_a_yanked_file_ends_with_1(locked: Bench, tmp_path: Path) -> None:
    page = tmp_path / "index/lead/index.html"
    text = page.read_text()
    page.write_text(text.replace("<a ", '<a data-yanked="broken" ', 1))
    with osv({}, []) as url:
        code, document = outdated(locked, url)
    assert code == 1
    assert rows(document, "withdrawn") == [("lead 1.0.0", "yanked: broken")]


def test_a_release_that_is_gone_ends_with_1(locked: Bench, tmp_path: Path) -> None:
    page = tmp_path / "index/lead/index.html"
    page.write_text(
        "\n".join(line for line in page.read_text().splitlines() if "1.0.0" not in line)
    )
    with osv({}, []) as url:
        code, document = outdated(locked, url)
    assert code == 1
    assert rows(document, "withdrawn") == [("lead 1.0.0", "the index has no version 1.0.0")]


@pytest.mark.long(after=1)
@pytest.mark.parametrize("body", [b"no JSON", b'{"results": []}', b'{"results": [{"vulns": [1]}]}'])
def test_an_answer_of_another_form_is_not_nothing(locked: Bench, body: bytes) -> None:
    with osv({}, [], body) as url:
        code, document = outdated(locked, url)
    assert code == 3
    assert "does not have the format" in document["unchecked"][0]


def test_a_service_that_is_away_is_not_nothing(locked: Bench) -> None:
    code, document = outdated(locked, "http://127.0.0.1:9")
    assert code == 3
    assert "could not be checked" in document["unchecked"][0]
    assert outdated(locked, "")[0] == 3


def test_an_empty_variable_sends_nothing(locked: Bench) -> None:
    asked: list[Any] = []
    with osv({}, asked) as url:
        silent = locked.run("outdated", "spec.yaml", PROVISION_OSV_URL="")
        assert (silent.returncode, asked) == (3, [])
        assert "not checked: known vulnerabilities: no service" in silent.stdout
        nothing_else = "not found in spec.lock: withdrawn; end of support\n"
        assert silent.stdout.endswith(nothing_else), silent.stdout
        assert locked.run("outdated", "spec.yaml", PROVISION_OSV_URL=url).returncode == 0
        assert len(asked) == 1
        option = locked.run("outdated", "spec.yaml", "--osv-url", "", PROVISION_OSV_URL=url)
        assert (option.returncode, len(asked)) == (3, 1)


def test_an_address_of_another_kind_is_refused(locked: Bench) -> None:
    done = locked.run("outdated", "spec.yaml", PROVISION_OSV_URL="file:///etc")
    assert done.returncode == 2
    assert "PROVISION_OSV_URL=file:///etc: expected an address" in done.stderr
    done = locked.run("outdated", "spec.yaml", "--osv-url", "file:///etc")
    assert done.returncode == 2
    assert "expected an address" in done.stderr


def spec(text: str) -> Spec:
    return Spec.model_validate(yaml.safe_load(text))


@pytest.mark.parametrize(
    ("today", "expected"),
    [("2026-11-27", []), ("2027-08-03", ["python 3.11"]), ("2029-01-01", ["python 3.11"])],
)
def test_python_near_its_end_is_named(today: str, expected: list[str]) -> None:
    text = 'gpu: none\npython: "3.11"\npackages: [numpy]\n'
    items = list_ending(spec(text), load_facts(), date.fromisoformat(today))
    assert [item.name for item in items] == expected


def test_an_image_near_its_end_is_named() -> None:
    facts = load_facts()
    image = next(image for image in facts.images.values() if image.end_of_support)
    desk = (
        f"{{kind: workbench, project: my-project, zones: [us-central1-a], image: {image.family}}}"
    )
    text = f'gpu: none\npython: "3.14"\npackages: [numpy]\ntargets:\n  desk: {desk}\n'
    names = [item.name for item in list_ending(spec(text), facts, date(2030, 1, 1))]
    assert names == [f"image {image.family} of desk"]
    assert list(list_ending(spec(text), facts, date(2026, 6, 1))) == []
