"""`lock --verify`: each name, version and hash of a lock is compared with what the indexes list;
what cannot be asked is never verified.
"""

from __future__ import annotations

import functools
import hashlib
import http.server
import json
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from provision.lock.wheels import file_identity
from tests.adapters.serving import CERTIFICATE, answering, behind_password, certified, redirecting
from tests.attacks.test_foreign_locks import damaged, package
from tests.rig import Bench, make_index, make_wheel, served, small_spec
from tests.support import make_once

Answer = Callable[[http.server.BaseHTTPRequestHandler], None]


@contextmanager
def replying(answer: Answer) -> Iterator[str]:
    """Serve whatever `answer` writes and give the address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        def log_message(self, *_: object) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/simple"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def locked(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A project with a lock of alpha 2.0 and gamma 1.0."""
    bench.spec(small_spec("gamma"))

    def make(folder: Path) -> None:
        done = bench.run("lock", "spec.yaml")
        assert done.returncode == 0, done.stderr
        shutil.copy(bench.folder / "spec.lock", folder)

    shutil.copy(make_once(tmp_path_factory, "verified-lock", make) / "spec.lock", bench.folder)
    return bench


def verify(bench: Bench, code: int, *words: str, **variables: str) -> str:
    """Run `lock --verify`, which has to end with `code` and say all of `words`; return what it
    said, as one line.
    """
    done = bench.run("lock", "spec.yaml", "--verify", **variables)
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == code, said
    for word in words:
        assert word in said
    assert ("spec.lock is verified" in said) == (code == 0)
    assert "Traceback" not in said
    return said


def page(bench: Bench, name: str) -> Path:
    return bench.folder.parent / "index" / name / "index.html"


def test_a_lock_is_verified_on_disk_and_on_the_web(locked: Bench) -> None:
    verify(
        locked,
        0,
        "pypi (file://",
        "2 packages, 2 files",
        "each listed by its index with the locked sha256",
    )
    with served(locked.folder.parent / "index") as address:
        verify(locked, 0, f"pypi ({address})", PROVISION_INDEX_PYPI=address)
        assert "127.0.0.1" not in (locked.folder / "spec.lock").read_text()


def test_the_result_as_data(locked: Bench) -> None:
    page(locked, "alpha").write_text(
        page(locked, "alpha").read_text().replace("<a ", '<a data-yanked="broken" ')
    )
    damaged(
        locked,
        lambda document: package(document, "gamma").update(
            files={"gamma-1.0-py3-none-any.whl": "0" * 64}
        ),
    )
    done = locked.run("lock", "spec.yaml", "--verify", "--output-format", "json")
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert (told["version"], told["lock"], told["verified"]) == (1, "spec.lock", False)
    assert told["indexes"] == {"pypi": {"asked": locked.index, "packages": 2, "files": 2}}
    assert [(note["package"], note["file"]) for note in told["mismatches"]] == [
        ("gamma", "gamma-1.0-py3-none-any.whl")
    ]
    assert [(note["package"], note["what"]) for note in told["yanked"]] == [
        ("alpha", "yanked: broken")
    ]
    assert told["unproven"] == []


def test_a_hash_that_the_index_does_not_list(locked: Bench) -> None:
    damaged(
        locked,
        lambda document: package(document, "alpha").update(
            files={"alpha-2.0-py3-none-any.whl": "0" * 64}
        ),
    )
    assert locked.run("lock", "spec.yaml", "--check").returncode == 0
    real = hashlib.sha256(
        (page(locked, "alpha").parent / "alpha-2.0-py3-none-any.whl").read_bytes()
    ).hexdigest()
    said = verify(
        locked,
        1,
        "mismatch: alpha 2.0, alpha-2.0-py3-none-any.whl on pypi",
        f"lists sha256 {real}, but the lock has {'0' * 64}",
        "do not install it",
    )
    assert "spec.lock does not match its indexes: 1 of 2 files differ" in said


def test_a_name_that_uv_normalizes_is_the_listed_one(bench: Bench, tmp_path: Path) -> None:
    """The index lists `PyYAML-...`, and uv writes `pyyaml-...` into the lock."""
    wheels = (
        make_wheel(tmp_path / "wheels", "PyYAML", "6.0.2"),
        make_wheel(tmp_path / "wheels", "PyYAML", "6.0.3"),
    )
    make_index(tmp_path / "index", wheels[:1])
    bench.spec(small_spec("pyyaml==6.0.2"))
    assert bench.run("lock", "spec.yaml").returncode == 0
    assert '"pyyaml-6.0.2-py3-none-any.whl"' in (bench.folder / "spec.lock").read_text()
    verify(bench, 0, "1 package, 1 file, each listed by its index")
    outdated = bench.run("outdated", "spec.yaml", "--osv-url", "", "--output-format", "json")
    assert json.loads(outdated.stdout)["outdated"] == []
    listed = page(bench, "pyyaml")
    listed.write_text(re.sub("sha256=.{8}", "sha256=00000000", listed.read_text()))
    verify(bench, 1, "lists sha256 00000000")
    make_index(tmp_path / "index", wheels[1:])
    verify(bench, 1, "the index has no version 6.0.2")


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("PyYAML-6.0.2-py3-none-any.whl", "pyyaml-6.0.2-py3-none-any.whl", True),
        ("Foo_Bar-1.0.0-py2.py3-none-any.whl", "foo_bar-1.0.0-py3.py2-none-any.whl", True),
        ("PyYAML-6.0.2.tar.gz", "pyyaml-6.0.2.tar.gz", True),
        ("pyyaml-6.0.2.tar.gz", "pyyaml-6.0.2.zip", False),
        ("alpha-2.0-py3-none-any.whl", "alpha-2.0-1-py3-none-any.whl", False),
        ("alpha-2.0-py3-none-any.whl", "alpha-2.0-cp311-none-any.whl", False),
        ("alpha-2.0-py3-none-any.whl", "alpha-2.0.tar.gz", False),
    ],
)
def test_file_names_are_compared_by_what_they_state(first: str, second: str, same: bool) -> None:
    assert (file_identity(first) == file_identity(second)) is same


def test_of_two_spellings_the_one_with_the_locked_hash_is_compared(locked: Bench) -> None:
    text = page(locked, "gamma").read_text()
    other = text.replace("gamma-1.0-py3", "Gamma-1.0-py3")
    first = re.sub("sha256=.{8}", "sha256=00000000", other.replace("Gamma", "GAMMA"))
    page(locked, "gamma").write_text(first + "\n" + other)
    verify(locked, 0)


def _without_version(bench: Bench) -> None:
    text = page(bench, "alpha").read_text()
    page(bench, "alpha").write_text(
        "\n".join(line for line in text.splitlines() if "alpha-2.0" not in line)
    )


def _without_package(bench: Bench) -> None:
    shutil.rmtree(page(bench, "alpha").parent)


def _another_file_of_the_version(bench: Bench) -> None:
    page(bench, "alpha").write_text(
        page(bench, "alpha").read_text().replace("alpha-2.0-py3", "alpha-2.0-1-py3")
    )


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_without_version, "the index has no version 2.0"),
        (_without_package, "the index has no package alpha"),
        (_another_file_of_the_version, "the index does not list this file"),
    ],
)
def test_what_is_gone_from_the_index(
    locked: Bench, change: Callable[[Bench], None], said: str
) -> None:
    change(locked)
    verify(locked, 1, said, "`provision lock --upgrade alpha`")
    with served(locked.folder.parent / "index") as address:
        verify(locked, 1, said, PROVISION_INDEX_PYPI=address)


@pytest.mark.parametrize(
    ("attribute", "said"),
    [('data-yanked="it breaks &lt;b&gt;"', "yanked: it breaks <b>"), ("data-yanked", "yanked")],
)
def test_a_yanked_file_is_named(locked: Bench, attribute: str, said: str) -> None:
    page(locked, "gamma").write_text(
        page(locked, "gamma").read_text().replace("<a ", f"<a {attribute} ")
    )
    verify(
        locked,
        0,
        f"note: gamma 1.0, gamma-1.0-py3-none-any.whl on pypi: {said}",
        "choose another version",
    )


def test_a_file_without_a_hash_on_the_index_is_not_verified(locked: Bench) -> None:
    page(locked, "gamma").write_text(
        page(locked, "gamma").read_text().partition("#sha256=")[0] + '">gamma</a>'
    )
    verify(
        locked,
        3,
        "not compared: gamma 1.0",
        "the index lists the file without a sha256",
        "spec.lock is not verified: 1 file",
    )


def test_a_lock_that_is_stale_or_refused_is_not_asked_for(locked: Bench) -> None:
    variables = {"PROVISION_INDEX_PYPI": "http://127.0.0.1:9/simple"}
    path = locked.folder / "spec.lock"
    text = path.read_text()
    damaged(
        locked,
        lambda document: document["packages"].append(dict(package(document, "alpha"), name="evil")),
    )
    verify(locked, 1, "differs from what `provision lock` writes for spec.yaml", **variables)
    path.write_text(text)
    locked.spec(small_spec("gamma>=1"))
    verify(locked, 1, "spec.lock is out of date", "packages: + gamma>=1", **variables)
    path.unlink()
    verify(locked, 1, "there is no spec.lock", **variables)


def test_the_json_of_pep_691(locked: Bench) -> None:
    def answer(request: http.server.BaseHTTPRequestHandler) -> None:
        name = request.path.strip("/").rpartition("/")[2]
        assert request.headers["Accept"].startswith("application/vnd.pypi.simple.v1+json")
        folder = locked.folder.parent / "index" / name
        rows: list[dict[str, Any]] = [
            {
                "filename": file.name,
                "url": file.name,
                "hashes": {"sha256": hashlib.sha256(file.read_bytes()).hexdigest()},
                "yanked": name == "gamma",
            }
            for file in folder.glob("*.whl")
        ]
        body = json.dumps({"meta": {"api-version": "1.0"}, "name": name, "files": rows}).encode()
        request.send_response(200)
        request.send_header("Content-Type", "application/vnd.pypi.simple.v1+json")
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    with replying(answer) as address:
        said = verify(
            locked, 0, "gamma-1.0-py3-none-any.whl on pypi: yanked", PROVISION_INDEX_PYPI=address
        )
        assert "alpha 2.0" not in said


# What cannot be asked


def test_an_index_that_cannot_be_reached(locked: Bench) -> None:
    verify(
        locked,
        2,
        "the default index could not be reached",
        "127.0.0.1:9",
        "nothing was verified",
        PROVISION_INDEX_PYPI="http://127.0.0.1:9/simple",
    )
    done = locked.run("lock", "spec.yaml", "--verify", "--offline")
    assert done.returncode == 2
    assert "--verify needs the network" in done.stderr
    for other in ("--check", "--upgrade"):
        assert "cannot be combined" in locked.run("lock", "spec.yaml", "--verify", other).stderr


def _drips(request: http.server.BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("Content-Type", "text/html")
    request.end_headers()
    try:
        for _ in range(200):
            request.wfile.write(b" ")
            time.sleep(0.1)
    except OSError:
        return


def _drips_headers(request: http.server.BaseHTTPRequestHandler) -> None:
    try:
        request.wfile.write(b"HTTP/1.0 200 OK\r\n")
        for number in range(200):
            request.wfile.write(f"X-{number}: 0\r\n".encode()[: 1 + number % 9])
            time.sleep(0.1)
    except OSError:
        return


def _says_nothing(_: http.server.BaseHTTPRequestHandler) -> None:
    time.sleep(5)


def _cuts_off(request: http.server.BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("Content-Type", "text/html")
    request.send_header("Content-Length", "1000")
    request.end_headers()
    request.wfile.write(b'<a href="gamma-1.0-py3-none-any.whl')
    request.close_connection = True


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (_drips, "did not respond in time"),
        pytest.param(_drips_headers, "did not respond in time", marks=pytest.mark.long),
        (_says_nothing, "did not respond in time"),
        (_cuts_off, "could not be reached"),
    ],
)
def test_an_index_that_is_slow_or_cuts_off(locked: Bench, answer: Answer, said: str) -> None:
    with replying(answer) as address:
        verify(
            locked,
            2,
            f"the default index {said}",
            "nothing was verified",
            PROVISION_INDEX_PYPI=address,
            UV_HTTP_TIMEOUT="1",
        )


@pytest.mark.long(after=3)
@pytest.mark.parametrize(
    ("status", "kind", "body", "code", "said"),
    [
        (200, "application/json", b"{", 2, "returned an unreadable response"),
        (
            200,
            "application/json",
            b'{"files": [{"name": 1}]}',
            2,
            "returned an unreadable response",
        ),
        (200, "application/json", b"[" * 100_000, 2, "returned an unreadable response"),
        (
            200,
            "text/html",
            b"<title>Sign in to this network</title>",
            1,
            "the index has no version",
        ),
        (500, "text/plain", b"", 2, "refused the request"),
        (403, "text/plain", b"", 2, "user name and password"),
        (404, "text/plain", b"", 1, "the index has no package"),
    ],
)
def test_what_an_index_may_answer(
    locked: Bench, status: int, kind: str, body: bytes, code: int, said: str
) -> None:
    with answering(status, kind, body) as place:
        verify(locked, code, said, PROVISION_INDEX_PYPI=f"http://{place}/simple")


def test_a_failure_that_passes_is_asked_again(locked: Bench) -> None:
    seen: list[str] = []
    index = locked.folder.parent / "index"

    def answer(request: http.server.BaseHTTPRequestHandler) -> None:
        seen.append(request.path)
        name = request.path.strip("/").rpartition("/")[2]
        body = (index / name / "index.html").read_bytes() if seen.count(request.path) > 1 else b""
        request.send_response(200 if body else 503)
        request.send_header("Content-Type", "text/html")
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    with replying(answer) as address:
        verify(locked, 0, PROVISION_INDEX_PYPI=address, UV_HTTP_RETRIES="1")
    assert len(seen) == 4


def test_credentials_and_certificates_are_those_of_locking(locked: Bench) -> None:
    index = locked.folder.parent / "index"
    with behind_password(index, "me", "s3cret") as place:
        verify(locked, 2, "user name and password", PROVISION_INDEX_PYPI=f"http://{place}")
        said = verify(locked, 0, PROVISION_INDEX_PYPI=f"http://me:s3cret@{place}")
        assert "s3cret" not in said
        netrc = locked.folder / "netrc"
        netrc.write_text("machine 127.0.0.1 login me password s3cret\n")
        verify(locked, 0, PROVISION_INDEX_PYPI=f"http://{place}", NETRC=str(netrc))
    with certified(index) as place:
        verify(
            locked,
            2,
            "could not be reached",
            "certificate",
            PROVISION_INDEX_PYPI=f"https://{place}",
            SSL_CERT_FILE="",
        )
        verify(locked, 0, PROVISION_INDEX_PYPI=f"https://{place}", SSL_CERT_FILE=str(CERTIFICATE))


def test_a_redirection_to_a_file_of_this_machine_is_not_followed(locked: Bench) -> None:
    with redirecting(page(locked, "alpha").as_uri()) as place:
        verify(
            locked,
            2,
            "the default index refused the request",
            PROVISION_INDEX_PYPI=f"http://{place}",
        )


def test_each_index_is_asked_for_its_own_packages(bench: Bench) -> None:
    private = make_index(
        bench.folder.parent / "private", (make_wheel(bench.folder.parent / "own", "delta", "1.0"),)
    )
    bench.spec(
        small_spec(
            "alpha",
            "{name: delta, index: private}",
            extra="indexes: {private: {url: https://private.test/simple}}\n",
        )
    )
    there = {"PROVISION_INDEX_PRIVATE": private}
    assert bench.run("lock", "spec.yaml", **there).returncode == 0
    verify(bench, 0, f"private ({private}): 1 package, 1 file", "pypi (", **there)
    (bench.folder.parent / "private/delta/index.html").write_text("")
    verify(bench, 1, "on private: the index has no version 1.0", **there)
