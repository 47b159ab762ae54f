"""Colab with a bucket, Drive or a repository: where the payload is, how its report returns."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from provision.adapters import RealSystem
from provision.adapters.public_files import read_public_file
from provision.commands.apply import ApplyOptions, ApplyResult, apply
from provision.commands.destroy import destroy
from provision.commands.plan import plan
from provision.commands.shared.report_inbox import InboxResult, process_inbox
from provision.commands.status import status
from provision.effects.google import UploadObjects
from provision.errors import NetworkError, Refused
from provision.plan import Action, Operation
from provision.sandbox.serve import Sandbox, serve
from provision.state import Ledger, create_empty_state, dumps, loads
from provision.state_store import LocalStore
from provision.targets.colab.cell import parse_about
from provision.targets.colab.driver import ColabDriver
from tests.notebook_rig import Home, changed
from tests.rig import served

BUCKET = "bucket: gs://my-bucket/p"


def declare(home: Home, fields: str) -> None:
    """Add fields to the Colab target."""
    text = home.path.read_text()
    assert "isolation: venv}" in text
    home.path.write_text(text.replace("isolation: venv}", f"isolation: venv, {fields}}}"))


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Sandbox]:
    with serve(tmp_path / "services") as sandbox:
        sandbox.store.make_bucket("my-bucket")
        yield sandbox


class Project:
    """A project whose Colab target has a bucket in the emulator."""

    def __init__(self, home: Home, running: Sandbox) -> None:
        declare(home, BUCKET)
        self.home, self.store, self.lines = home, running.store, list[str]()
        self.system = RealSystem(home.bench.environment(), endpoints=running.endpoints)

    def apply(self) -> ApplyResult:
        options = ApplyOptions()
        told = (lambda *_: None, self.lines.append)
        return apply(self.home.loaded, ("colab",), options, self.system, *told)

    def plan(self) -> Action:
        told = self.lines.append
        planned = plan(self.home.loaded, ("colab",), self.system, told)
        (action,) = planned.target_plans.plan.actions
        return action

    def inbox(self) -> InboxResult:
        return process_inbox(self.home.loaded, self.system, self.lines.append)

    def names(self) -> list[str]:
        return [str(one["name"]) for one in self.store.objects("my-bucket")]


@pytest.fixture
def project(home: Home, running: Sandbox) -> Project:
    return Project(home, running)


def cell_of(home: Home) -> dict[str, Any]:
    about = parse_about((home.bench.folder / "spec.colab.py").read_text())
    assert about is not None
    return about


def test_the_payload_is_uploaded_and_the_report_fetched(project: Project, genuine: bytes) -> None:
    home, nonce = project.home, project.home.nonce
    pending = project.apply()
    assert pending.exit_code == 3
    assert pending.pending[0].reason == "waiting for its report, which is fetched from the bucket"
    about = cell_of(home)
    address = f"gs://my-bucket/p/spec/{nonce}/{about['payload_sha256'][:12]}.payload"
    assert (about["payload"], about["payload_urls"]) == ([], [address])
    assert len((home.bench.folder / "spec.colab.py").read_text()) < 12_000
    (name,) = project.names()
    kept = project.store.object("my-bucket", name)
    assert kept is not None
    content = project.system.cloud().object(address, 2**24)
    assert content is not None
    assert hashlib.sha256(content).hexdigest() == about["payload_sha256"]
    assert project.plan().operation is Operation.KEEP
    assert project.inbox() == InboxResult()

    project.store.put_object("my-bucket", f"p/spec/{nonce}/report.json", genuine)
    (imported,) = project.inbox().imported
    assert (imported.report.verdict, imported.fresh) == ("verified", True)
    assert project.inbox() == InboxResult()
    assert project.apply().exit_code == 0

    project.store.delete_object("my-bucket", name)
    action = project.plan()
    assert (action.operation, action.reason) == (
        Operation.CHANGE,
        "its payload is not in the bucket",
    )
    assert project.apply().exit_code == 0
    assert name in project.names()

    project.store.put_object("my-bucket", "p/spec/other", b"theirs")
    destroy(home.path, ("colab",), project.system, lambda _: None, project.lines.append)
    assert project.names() == ["p/spec/other"]


def test_a_report_in_the_bucket_that_is_refused_is_named_once(
    project: Project, genuine: bytes
) -> None:
    project.apply()

    def forge(document: dict[str, Any]) -> None:
        document["subject"]["nonce"] = "f" * 32

    name = f"p/spec/{project.home.nonce}/report.json"
    project.store.put_object("my-bucket", name, changed(genuine, forge))
    result = project.inbox()
    assert (result.imported, len(result.rejected)) == ((), 1)
    assert project.inbox() == InboxResult()
    project.store.put_object("my-bucket", name, genuine)
    assert len(project.inbox().imported) == 1


def test_a_bucket_that_cannot_be_read_does_not_stop_the_inbox(
    project: Project, home: Home, running: Sandbox
) -> None:
    project.apply()
    system = RealSystem(home.bench.environment(), endpoints=running.endpoints)
    running.store.put_object("my-bucket", f"p/spec/{home.nonce}/report.json", b" " * (9 * 2**20))
    lines: list[str] = []
    assert process_inbox(home.loaded, system, lines.append) == InboxResult()
    (line,) = lines
    assert line.startswith("cannot fetch the report of spec/colab: ")
    found = status(home.loaded, LocalStore(home.bench.own, system).load_ledger(), system)
    colab = next(target for target in found.targets if target.target == "colab")
    assert "its report is fetched from gs://my-bucket/p" in colab.report_arrival


def test_rendering_alone_uploads_nothing_and_says_so(project: Project) -> None:
    done = project.home.bench.run("render", "spec.yaml")
    assert done.returncode == 0, done.stderr
    assert "uploads the payload to gs://my-bucket/p/spec/" in done.stdout
    assert "the cell copies the report to gs://my-bucket/p/spec/" in done.stdout
    assert project.names() == []
    assert project.plan().operation is Operation.CHANGE
    assert project.home.bench.run("render", "spec.yaml", "--check").returncode == 0


def test_a_verification_elsewhere_says_where_its_report_arrives(project: Project) -> None:
    project.apply()
    state = LocalStore(project.home.bench.own, project.system).load_ledger()
    with pytest.raises(Refused) as caught:
        ColabDriver().require_verifiable(project.home.place(), state, project.system, ())
    assert "run this command again: the report arrives in gs://my-bucket/p/" in caught.value.hint


def test_a_folder_that_is_not_ours_is_not_deleted(project: Project) -> None:
    project.apply()
    path = project.home.bench.own / "state.json"
    state = loads(path.read_text(), "state.json")
    record = {**(state.resource("spec/colab", "notebook") or {}), "folder": "gs://my-bucket/p/"}
    path.write_text(dumps(state.with_record("spec/colab", "notebook", record)))
    with pytest.raises(Refused, match="refusing to delete gs://my-bucket/p/"):
        destroy(project.home.path, ("colab",), project.system, lambda _: None, project.lines.append)


def on_github(home: Home) -> None:
    for words in (
        ("init", "-q"),
        ("remote", "add", "origin", "https://github.com/me/our-project.git"),
    ):
        subprocess.run(["git", *words], cwd=home.bench.folder, check=True)


def test_a_payload_in_the_repository_is_checked_where_the_cell_fetches_it(home: Home) -> None:
    declare(home, "payload: repository")
    refused = home.bench.run("apply", "spec.yaml", "--target", "colab", "--yes")
    assert refused.returncode == 2
    assert "`payload: repository` needs a repository on GitHub" in refused.stderr
    on_github(home)
    done = home.bench.run("render", "spec.yaml")
    assert done.returncode == 0, done.stderr
    assert "commit and push spec.payload: the cell downloads it from" in done.stdout
    about, payload = cell_of(home), (home.bench.folder / "spec.payload").read_bytes()
    blob = subprocess.run(
        ["git", "hash-object", "spec.payload"],
        cwd=home.bench.folder,
        capture_output=True,
        text=True,
    ).stdout.strip()
    assert about["payload_urls"] == [
        "https://raw.githubusercontent.com/me/our-project/HEAD/spec.payload",
        f"https://api.github.com/repos/me/our-project/git/blobs/{blob}",
    ]
    assert hashlib.sha256(payload).hexdigest() == about["payload_sha256"]
    seen: list[str] = []

    def planned(answers: dict[str, bytes]) -> Action:
        def fetch(url: str, limit: int, environment: Any) -> bytes:
            seen.append(url)
            if url not in answers:
                raise NetworkError(f"cannot read {url}", why="HTTP 404")
            return answers[url]

        driver = ColabDriver(fetch=fetch)
        ledger = LocalStore(home.bench.own, home.world).load_ledger()
        observed = driver.observe(home.place(), ledger, home.world)
        (action,) = driver.plan(home.place(), observed)
        return action

    absent = planned({})
    push = (
        f"payload: commit and push spec.payload: cannot read {about['payload_urls'][0]}: HTTP 404"
    )
    assert push in absent.notes
    assert seen == about["payload_urls"]
    older = planned({about["payload_urls"][0]: b"older"})
    assert any("is a different one" in note for note in older.notes)
    for url in about["payload_urls"]:
        there = planned({url: payload})
        assert there.operation is Operation.KEEP
        assert not any("commit and push" in note for note in there.notes)
    assert not any(isinstance(effect, UploadObjects) for effect in absent.effects)
    system = RealSystem(home.bench.environment(UV_OFFLINE="1"))
    told = (lambda *_: None, list[str]().append)
    (pending,) = apply(home.loaded, ("colab",), ApplyOptions(), system, *told).pending
    assert pending.summary.notebook is not None
    note = pending.summary.notebook.payload_note
    assert note == push.replace("HTTP 404", "the network is disabled")


def test_a_public_file_is_read_without_credentials(tmp_path: Path) -> None:
    (tmp_path / "a.payload").write_bytes(b"content")
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password canary\n")
    environment = {"HOME": str(tmp_path)}
    with served(tmp_path) as address:
        assert read_public_file(f"{address}/a.payload", 100, environment) == b"content"
        assert read_public_file(f"{address}/a.payload", 3, environment) == b"con"
        with pytest.raises(NetworkError) as caught:
            read_public_file(f"{address}/b.payload", 100, environment)
        assert caught.value.why == "HTTP 404"
    with pytest.raises(NetworkError):
        read_public_file("http://127.0.0.1:9/a", 100, {"UV_OFFLINE": "1"})


def test_a_report_on_drive_is_named_as_drive_for_desktop_names_it(home: Home) -> None:
    declare(home, "paths: {data: 'drive:/data'}")
    done = home.bench.run("render", "spec.yaml")
    assert done.returncode == 0, done.stderr
    name = f"My Drive/provision/spec-{home.nonce[:12]}.report.json"
    assert f"the cell copies the report to Google Drive: {name}" in done.stdout
    assert "FILE is the report in Google Drive for desktop" in done.stdout
    shown = home.bench.run("status", "spec.yaml").stdout
    assert f"in {name}: add it with `provision report add FILE`" in " ".join(shown.split())
    context = home.place()
    observed = ColabDriver().observe(context, Ledger(create_empty_state("")), home.world)
    assert observed.rendered.report.startswith("/content/drive/MyDrive/provision/spec-")
    assert json.loads(json.dumps(context.expectations(Path("/x"))["paths"])) == {
        "data": "/content/drive/MyDrive/data"
    }
