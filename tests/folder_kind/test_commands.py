"""The commands on a target of a kind that the package does not have, through the entry point."""

from __future__ import annotations

import json

from tests.folder_kind.conftest import Project


def test_a_machine_from_the_first_check_to_its_removal(project: Project) -> None:
    assert "No findings." in project.check(0, "lint", "spec.yaml")
    assert "wrote spec.lock" in project.check(0, "lock", "spec.yaml")
    planned = project.check(0, "plan", "spec.yaml")
    assert "+    folder spec.machine: it does not exist" in planned
    assert "quick verification on the machine: the environment will change" in planned
    project.service.verdicts = ["verified", None]
    assert "attach" in project.check(3, "apply", "spec.yaml", "--yes", "--detach")
    assert project.service.names() == ["spec.machine"]
    assert "not verified yet" in project.check(0, "plan", "spec.yaml")
    assert "current" in project.check(1, "status", "spec.yaml")
    project.service.verdicts = ["verified", "verified"]
    assert "VERIFIED" in project.check(0, "verify", "spec.yaml")
    assert "verified" in project.check(0, "status", "spec.yaml")
    assert "VERIFIED" in project.check(0, "report", "spec.yaml")
    applied = project.check(0, "apply", "spec.yaml", "--yes")
    assert f"spec.machine in {project.service.address}" in applied
    assert "provision open" not in applied
    assert project.service.changes == ["PUT spec.machine", "POST spec.machine"]
    assert "no orphans" in project.check(0, "orphans", "spec.yaml")
    project.check(0, "destroy", "spec.yaml", "--yes")
    assert project.service.names() == []
    assert not project.bench.own.exists()


def test_attach_waits_for_every_rank_and_the_worst_verdict_counts(project: Project) -> None:
    project.service.verdicts = ["verified", "failed"]
    project.check(3, "apply", "spec.yaml", "--yes", "--detach")
    assert "failed" in project.check(1, "attach", "spec.yaml")
    reports = project.bench.own / "reports/spec.machine"
    ranks = [json.loads((reports / f"rank-{rank}.json").read_bytes()) for rank in (0, 1)]
    assert [report["verdict"]["result"] for report in ranks] == ["verified", "failed"]
    assert json.loads((reports / "report.json").read_bytes()) == ranks[1]
    assert "failed" in project.check(1, "apply", "spec.yaml", "--yes")


def test_the_text_alone_decides_what_is_refused(project: Project) -> None:
    project.write(rank=1)
    unknown = project.check(1, "lint", "spec.yaml")
    assert "unknown key rank under targets.machine" in unknown
    assert "did you mean ranks?" in unknown
    project.write(ranks=3)
    assert "FLD001" in project.check(1, "lint", "spec.yaml")
    assert "FLD001" in project.check(1, "plan", "spec.yaml")
    assert "FLD001 too-many-ranks" in project.check(0, "explain", "FLD001")


def test_the_schema_and_messages_have_the_kind(project: Project) -> None:
    schema = json.loads(project.check(0, "schema"))
    target = schema["definitions"]["FolderTarget"]
    assert target["properties"]["ranks"]["description"].startswith("Processes that verify")
    path = project.write()
    path.write_text(path.read_text().replace("kind: folder", "kind: folders"))
    assert "did you mean folder?" in project.check(1, "lint", "spec.yaml")
    path.write_text(path.read_text().replace("kind: folders, ", ""))
    found = project.check(1, "lint", "spec.yaml")
    assert "workbench, folder)" in " ".join(found.split())


def test_the_package_alone_does_not_know_the_kind(project: Project) -> None:
    project.write()
    done = project.bench.run("lint", "spec.yaml")
    assert done.returncode == 1
    assert "targets.machine.kind is `folder`" in done.stdout


def test_a_field_that_the_kind_declares_makes_a_lock_stale(project: Project) -> None:
    project.check(0, "lock", "spec.yaml")
    project.check(0, "lock", "--check", "spec.yaml")
    project.write(ranks=1)
    project.check(0, "lock", "--check", "spec.yaml")
    project.write(release="'2'")
    project.check(1, "lock", "--check", "spec.yaml")


def test_a_machine_without_a_state_is_an_orphan_until_it_is_adopted(project: Project) -> None:
    project.check(0, "apply", "spec.yaml", "--yes")
    (project.bench.own / "state.json").unlink()
    assert "curl -X DELETE" in project.check(1, "orphans", "spec.yaml")
    assert "another state's" in project.check(2, "apply", "spec.yaml", "--yes")
    project.check(0, "apply", "spec.yaml", "--yes", "--adopt")
    project.check(0, "orphans", "spec.yaml")
    project.check(0, "destroy", "spec.yaml", "--yes")
    assert project.service.names() == []


def test_an_answer_that_is_lost_leaves_one_machine(project: Project) -> None:
    project.service.lost_answers = 1
    assert "did not answer" in project.check(2, "apply", "spec.yaml", "--yes")
    assert "no orphans" in project.check(0, "orphans", "spec.yaml")
    project.check(0, "apply", "spec.yaml", "--yes")
    assert project.service.changes == ["PUT spec.machine"]
    project.service.lost_answers = 1
    project.check(2, "destroy", "spec.yaml", "--yes")
    project.check(0, "destroy", "spec.yaml", "--yes")
    assert not project.bench.own.exists()
