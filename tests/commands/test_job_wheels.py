"""Wheels of the lock in the bucket, by the real command against the emulated services: the primary
machine adds them, and all machines of later jobs install from there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from provision.sandbox.store import Store
from tests.commands.test_job_run import CODE, RUN, prepare
from tests.commands.test_vertex_job import SPEC, logs
from tests.rig import Bench, make_index, make_wheel, served

pytest.importorskip("google.cloud.notebooks_v2")

PROGRAM = "import alpha, delta\nprint(alpha.__version__, delta.__version__)\n"
TWO_PACKAGES = SPEC.replace("[alpha]", "[alpha, delta]") + CODE
PREFIX = "provision/provision-wheels/"
FOLDER = f"gs://my-bucket/{PREFIX}"


class Cluster(NamedTuple):
    """A project whose package index is served, with the paths that were requested from it."""

    bench: Bench
    requests: list[str]

    def plan(self) -> str:
        """The line of the plan about wheels."""
        done = self.bench.run("plan", "spec.yaml", "--sandbox")
        assert done.returncode == 0, done.stderr
        text = " ".join(done.stdout.split())
        return "wheels: " + text.partition(" wheels: ")[2].partition(" all machines")[0]

    def run(self, cache: str, *options: str) -> tuple[str, list[str]]:
        """Run the program in a job whose machines have a new cache of uv; return the command's
        messages, and what the machines reported about wheels in the order of their ranks.
        """
        self.requests.clear()
        before, folder = self._jobs(), self.bench.folder / cache
        folder.mkdir()
        words = (*RUN, *options, "--", "python", "train.py")
        done = self.bench.run(*words, UV_CACHE_DIR=str(folder))
        assert (done.returncode, done.stdout) == (0, "2.0 1.0+cpu\n"), done.stderr + logs(
            self.bench
        )
        assert list(folder.iterdir()), "the machines used this cache"
        (job,) = self._jobs() - before
        lines = [
            line.partition(" wheels: ")[2]
            for log in sorted(job.glob("*/log.txt"))
            for line in log.read_text().splitlines()
            if " wheels: " in line
        ]
        return " ".join(done.stderr.split()), lines

    def _jobs(self) -> set[Path]:
        return set((self.bench.folder / ".provision/sandbox/replicas").glob("*"))

    @property
    def objects(self) -> dict[str, bytes]:
        """The objects in the bucket by their names."""
        store = Store(self.bench.folder / ".provision/sandbox")
        names = [about["name"] for about in store.objects("my-bucket")]
        return {name: item.content for name in names if (item := store.object("my-bucket", name))}


@pytest.fixture
def cluster(bench: Bench) -> Iterator[Cluster]:
    """A project with a locked spec."""
    requests: list[str] = []
    folder = bench.folder.parent / "index"
    make_index(folder, (make_wheel(bench.folder.parent / "wheels", "delta", "1.0+cpu"),))
    with served(folder, requests.append) as index:
        own = replace(bench, index=index)
        prepare(own, TWO_PACKAGES, PROGRAM)
        yield Cluster(own, requests)


def test_the_first_job_adds_wheels_and_the_next_one_needs_no_index(cluster: Cluster) -> None:
    expected = f"wheels: 2 of 2 missing in {FOLDER}; the primary machine adds them"
    assert cluster.plan() == expected
    _, reported = cluster.run("first-cache")
    assert cluster.requests
    assert reported[0] == "2 added to the bucket"
    assert cluster.plan() == f"wheels: 0 of 2 missing in {FOLDER}"
    errors, reported = cluster.run("second-cache")
    assert cluster.requests == [], "neither machine needs the index"
    assert reported == ["2 from the bucket", "2 from the bucket"]
    assert "wheels" not in errors
    gone = cluster.bench.run("destroy", "spec.yaml", "--sandbox", "--yes")
    assert gone.returncode == 0, gone.stderr
    shown = " ".join(gone.stderr.split())
    note = "stay, because other targets may use them; `rm -r .provision/sandbox` deletes them"
    assert f"wheels in {FOLDER}, if any, {note}" in shown
    assert "to remove the emulator's data too, delete .provision/sandbox" in shown
    digests = {hashlib.sha256(content).hexdigest() for content in cluster.objects.values()}
    assert len(digests) == 2
    assert digests == {name.removeprefix(PREFIX).split("/")[0] for name in cluster.objects}


def test_a_poisoned_wheel_and_a_refused_one_are_reported_and_taken_from_the_index(
    cluster: Cluster,
) -> None:
    prepare(cluster.bench, TWO_PACKAGES.replace("replicas: 2", "replicas: 1"), PROGRAM)
    wheel = next(cluster.bench.folder.parent.glob("wheels/alpha-2.0-*.whl"))
    name = f"{hashlib.sha256(wheel.read_bytes()).hexdigest()}/{wheel.name}"
    store = Store(cluster.bench.folder / ".provision/sandbox")
    store.put_object("my-bucket", f"{PREFIX}{name}", b"not the wheel")
    assert cluster.plan().startswith("wheels: 1 of 2 missing in")
    errors, reported = cluster.run("cache", "--fault", "no-wheel-write")
    assert reported[0] == "1 from the index, 1 left to uv"
    poisoned = (
        f"{FOLDER}{name} does not have the locked sha256; the index is used instead; delete the "
        "object, and check who can write to the bucket"
    )
    assert errors.count(poisoned) == 1, errors
    assert errors.count("wheels are not added to the bucket (grant the job's service") == 1
    wheels = {name: text for name, text in cluster.objects.items() if name.startswith(PREFIX)}
    assert wheels == {f"{PREFIX}{name}": b"not the wheel"}
