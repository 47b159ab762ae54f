"""Packages from folders, wheel files and repositories at a local target."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from provision.adapters import RealSystem
from provision.agent.probe.report_json import expand
from provision.commands.shared.load import load_spec
from provision.commands.shared.package_contents import build_wheels
from provision.errors import ExternalError
from provision.lock import Lock, loads
from provision.targets.colab import cell
from provision.targets.colab.payload import decode_payload
from tests.rig import BACKEND, Bench, make_index, make_wheel, small_spec

PROJECT = '[project]\nname = "ours"\nversion = "1.0"\ndependencies = ["beta"]\n'
SYSTEM = '[build-system]\nrequires = ["rigbackend"]\nbuild-backend = "rigbackend"\n'
URL = "https://git.example.com/team/ours.git"


def write_package(folder: Path, value: int = 1, project: str = PROJECT) -> None:
    """A package that rigbackend builds; each build adds a line to `builds` above it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(project + SYSTEM)
    code = f'NAME, VERSION, SEEN = "ours", "1.0", {value}\n'
    (folder / "build.py").write_text(code)
    (folder / "ours.py").write_text(f"BUILT_WITH = {value}\n")


@pytest.fixture
def project(bench: Bench) -> Bench:
    """A project with the package ours in libs/ours, and its backend on the index."""
    backend = make_wheel(bench.folder / "made", "rigbackend", "1.0", code=BACKEND)
    make_index(bench.folder.parent / "index", (backend,))
    (bench.folder / "pyproject.toml").write_text("")
    write_package(bench.folder / "libs/ours")
    return bench


def lock(bench: Bench, package: str) -> Lock:
    bench.spec(small_spec(package))
    done = bench.run("lock", "spec.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    return loads((bench.folder / "spec.lock").read_text(), "spec.lock")


def apply(bench: Bench) -> str:
    done = bench.run("apply", "spec.yaml", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def installed(bench: Bench) -> str:
    python = bench.own / "envs/spec.local/bin/python"
    program = "import ours; print(ours.BUILT_WITH, ours.__file__)"
    return subprocess.run(
        [python, "-c", program], capture_output=True, text=True, check=True
    ).stdout


def readings(bench: Bench) -> dict[str, Any]:
    path = bench.own / "reports/spec.local/report.json"
    report = expand(json.loads(path.read_bytes()))
    return {reading["key"]: reading["value"] for reading in report["readings"]}


def refused(bench: Bench, package: str, verb: str = "lint") -> str:
    bench.spec(small_spec(package))
    done = bench.run(verb, "spec.yaml")
    assert done.returncode in (1, 2), done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return " ".join((done.stdout + done.stderr).split())


def test_a_folder_is_locked_by_its_requirements_and_built_again_after_an_edit(
    project: Bench,
) -> None:
    first = lock(project, "{name: ours, path: ./libs/ours}")
    versions = {package.name: package for package in first.packages}
    assert (versions["alpha"].version, versions["beta"].version) == ("1.0", "1.0")
    origin = versions["ours"].origin
    assert origin is not None
    assert (origin.path, [line for line, _ in origin.build]) == ("libs/ours", ["rigbackend==1.0"])
    assert str(project.folder) not in (project.folder / "spec.lock").read_text()

    assert "ours from libs/ours" in apply(project)
    assert installed(project).startswith("1 ")
    digest = readings(project)["source.ours"]
    assert "nothing has changed since" in project.run("plan", "spec.yaml").stdout

    write_package(project.folder / "libs/ours", 22)
    assert project.run("lock", "--check", "spec.yaml").returncode == 0
    planned = project.run("plan", "spec.yaml").stdout
    assert "the files of ours have changed" in planned
    assert "1 to change" in planned
    apply(project)
    assert installed(project).startswith("22 ")
    assert readings(project)["source.ours"] != digest

    write_package(project.folder / "libs/ours", 22, PROJECT.replace("beta", "gamma"))
    stale = project.run("lock", "--check", "spec.yaml")
    assert stale.returncode == 1
    assert "the requirements of libs/ours have changed" in stale.stdout + stale.stderr
    assert lock(project, "{name: ours, path: ./libs/ours}").digest != first.digest


@pytest.mark.long
def test_an_edit_of_an_editable_package_has_an_effect_at_once(project: Bench) -> None:
    before = lock(project, "{name: ours, path: libs/ours, editable: true}")
    apply(project)
    assert installed(project).split() == ["1", str(project.folder / "libs/ours/ours.py")]
    digest = readings(project)["source.ours"]

    write_package(project.folder / "libs/ours", 22)
    assert installed(project).startswith("22 ")
    assert project.run("lock", "--check", "spec.yaml").returncode == 0
    planned = project.run("plan", "spec.yaml").stdout
    assert "No changes; only the verification remains." in planned
    edited = "libs/ours/build.py, libs/ours/ours.py have changed since it was verified"
    assert edited in " ".join(planned.split())
    apply(project)
    assert readings(project)["source.ours"] != digest
    assert loads((project.folder / "spec.lock").read_text(), "") == before


@pytest.mark.long
def test_a_wheel_file_is_locked_by_its_hash(project: Bench) -> None:
    wheel = make_wheel(
        project.folder / "dist", "ours", "1.5", requires=("beta",), code="BUILT_WITH = 5"
    )
    found = lock(project, f"./dist/{wheel.name}")
    (ours,) = (package for package in found.packages if package.name == "ours")
    assert ([file.name for file in ours.files], ours.requires) == ([wheel.name], ("beta",))
    apply(project)
    assert installed(project).startswith("5 ")

    make_wheel(project.folder / "dist", "ours", "1.5", requires=("beta",), code="BUILT_WITH = 6")
    assert project.run("lock", "--check", "spec.yaml").returncode == 1
    apply(project)
    assert installed(project).startswith("6 ")


def test_what_cannot_be_used_is_a_finding(project: Bench) -> None:
    folder = project.folder
    (folder.parent / "outside").mkdir()
    (folder / "link").symlink_to(folder.parent / "outside")
    (folder / "empty").mkdir()
    (folder / "x-1.0-py3-none-any.whl").write_text("not a zip")
    for package, words in {
        "{name: ours, path: ../outside}": "is outside the project",
        "{name: ours, path: link}": "is a link to",
        "{name: ours, path: missing}": "the folder missing does not exist",
        "./missing-1.0-py3-none-any.whl": "does not exist",
        "./x-1.0-py3-none-any.whl": "is not a wheel",
        "{name: ours, path: empty}": "has no pyproject.toml",
        "{name: theirs, path: libs/ours}": "the package in libs/ours is ours, not theirs",
    }.items():
        assert words in refused(project, package), package
    for changed, words in {
        PROJECT + 'requires-python = "<3"\n': "requires Python <3",
        PROJECT.replace("beta", "beta @ https://example.com/beta.whl"): "requires beta from a URL",
        PROJECT + '[tool.uv.sources]\nbeta = { path = "../b" }\n': "takes beta from a different",
        PROJECT.replace('version = "1.0"', 'dynamic = ["version"]'): "dynamic fields: version",
        "[project\n": "is not valid TOML",
    }.items():
        write_package(folder / "libs/ours", project=changed)
        assert words in refused(project, "{name: ours, path: libs/ours}"), changed


def test_a_saved_plan_notices_an_edit_of_a_package(project: Bench) -> None:
    lock(project, "{name: ours, path: ./libs/ours}")
    assert project.run("plan", "spec.yaml", "--out", "plan.json").returncode == 0
    write_package(project.folder / "libs/ours", 22)
    stale = project.run("apply", "spec.yaml", "--yes", "--plan", "plan.json")
    assert stale.returncode == 2
    assert "changed since it was saved: files of ours" in stale.stderr


def test_pointers_of_lfs_in_a_package_are_found_in_its_folder_and_its_wheel(
    project: Bench,
) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    (project.folder / "libs/ours/data.bin").write_text(pointer)
    lock(project, "{name: ours, path: ./libs/ours}")
    planned = project.run("plan", "spec.yaml")
    assert "ours: data.bin is a Git LFS pointer" in " ".join(planned.stderr.split())
    wheel = make_wheel(project.folder / "dist", "theirs", "1.0", code=pointer)
    lock(project, f"./dist/{wheel.name}")
    done = project.run("apply", "spec.yaml", "--yes")
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    shown = " ".join(done.stderr.split())
    assert "the wheel of theirs has Git LFS pointers in place of files" in shown
    assert "theirs/__init__.py" in shown


def test_dynamic_metadata_needs_permission_to_run_code(project: Bench) -> None:
    dynamic = '[project]\nname = "ours"\ndynamic = ["version"]\n'
    write_package(project.folder / "libs/ours", project=dynamic)
    marker = project.folder / "ran"
    build = project.folder / "libs/ours/build.py"
    build.write_text(build.read_text() + f"open({str(marker)!r}, 'w').close()\n")
    assert "set `build: true`" in refused(project, "{name: ours, path: libs/ours}", "lock")
    assert not marker.exists()
    found = lock(project, "{name: ours, path: libs/ours, build: true}")
    assert [package.version for package in found.packages] == ["1.0"]
    assert marker.exists()


def write_tool(bench: Bench, *tags: str, size: int = 0) -> None:
    """Put a compiled build requirement of ours on the index, for some platforms."""
    (bench.folder / "libs/ours/pyproject.toml").write_text(
        PROJECT + SYSTEM.replace('["rigbackend"]', '["rigbackend", "tool"]')
    )
    index, folder = bench.folder.parent / "index", bench.folder / "tools"
    shutil.rmtree(index / "tool", ignore_errors=True)
    make_index(index, tuple(make_wheel(folder, "tool", "1.0", tag=tag, size=size) for tag in tags))


LINUX, MACOS = "py3-none-manylinux_2_17_x86_64", "py3-none-macosx_11_0_arm64"


def test_build_requirements_without_a_wheel_for_the_target_are_refused(project: Bench) -> None:
    write_tool(project, MACOS)
    shown = refused(project, "{name: ours, path: libs/ours}", "lock")
    assert "4:5: no versions of the build requirements of ours suit every target" in shown
    assert "tool==1.0 has no" in shown
    assert "change `requires` under [build-system] in its pyproject.toml" in shown


def test_build_requirements_that_are_locked_for_another_platform_are_named(project: Bench) -> None:
    target = "{kind: colab, runtime: '2026.07', isolation: venv}"
    line = "{name: ours, path: libs/ours}"
    project.spec(small_spec(line, extra=f"targets: {{c: {target}}}\n"))
    write_tool(project, LINUX, MACOS)
    assert project.run("lock", "spec.yaml").returncode == 0
    locked = loads((project.folder / "spec.lock").read_text(), "spec.lock")
    write_tool(project, LINUX, size=5)  # its hash is not in the lock

    class Mac(RealSystem):
        def platform(self) -> str:
            return "macos-arm64"

    for kind, end in ((Mac, " on this machine"), (RealSystem, "")):
        system = kind(project.environment())
        loaded = load_spec(project.folder / "spec.yaml", system)
        with pytest.raises(ExternalError) as error:
            build_wheels(loaded, locked, ("c",), system, lambda _: None)
        assert error.value.what.endswith(f"ours cannot be built{end}")
        assert "Hash mismatch for `tool==1.0`" in error.value.why
        why = "its build requirements are locked for linux-x86_64, and this machine is macos-arm64"
        assert (why in error.value.why) == (kind is Mac)


def test_another_kind_of_target_refuses_it(project: Bench) -> None:
    place = "project: my-project, region: us-central1, bucket: gs://my-bucket/p"
    target = f"{{kind: colab-enterprise, {place}}}"
    line = "{name: ours, path: libs/ours}"
    project.spec(small_spec(line, extra=f"targets: {{c: {target}}}\n"))
    done = project.run("lint", "spec.yaml")
    shown = " ".join(done.stdout.split())
    assert "a package from a path or a repository on a target of kind colab-enterprise" in shown
    assert "code: src" not in shown, "a target of this kind has no code"


def test_a_job_names_the_alternative_for_own_code(project: Bench) -> None:
    image = f"docker.io/library/python@sha256:{'0' * 64}"
    place = "project: my-project, regions: [us-central1], bucket: gs://my-bucket/p"
    target = f"{{kind: vertex-job, {place}, machine_type: n1-standard-8, image: '{image}'}}"
    line = "{name: ours, path: libs/ours}"
    project.spec(small_spec(line, extra=f"targets: {{c: {target}}}\n"))
    shown = " ".join(project.run("lint", "spec.yaml").stdout.split())
    assert "for your own code, set `code: src`, the folder with its modules" in shown


def test_a_runtime_gets_a_wheel_of_the_same_files(project: Bench) -> None:
    target = "{kind: colab, runtime: '2026.07', isolation: venv}"
    line = "{name: ours, path: libs/ours, editable: true}"
    project.spec(small_spec(line, extra=f"targets: {{c: {target}}}\n"))
    project.run("lock", "spec.yaml")

    def wheels() -> dict[str, bytes]:
        """Render the cell, and return the modules in the wheels of its payload."""
        done = project.run("render", "spec.yaml")
        assert done.returncode == 0, done.stdout + done.stderr
        about = cell.parse_about((project.folder / "spec.colab.py").read_text())
        assert about is not None
        payload = zipfile.ZipFile(io.BytesIO(decode_payload(about["payload"])))
        archive = zipfile.ZipFile(io.BytesIO(payload.read("wheels.zip")))
        (name,) = archive.namelist()
        document = json.loads(payload.read("document.json"))
        (row,) = (row for row in document["install"]["packages"] if row["name"] == "ours")
        assert row["files"] == {name: hashlib.sha256(archive.read(name)).hexdigest()}
        assert document["expectations"]["sources"]["ours"]["editable"] is False
        return {name: zipfile.ZipFile(io.BytesIO(archive.read(name))).read("ours.py")}

    assert "wheel: ours from libs/ours" in project.run("plan", "spec.yaml").stdout
    first = wheels()
    assert first == {"ours-1.0-py3-none-any.whl": b"BUILT_WITH = 1"}
    write_package(project.folder / "libs/ours", 22)
    assert project.run("render", "spec.yaml", "--check").returncode == 1
    assert wheels() == {"ours-1.0-py3-none-any.whl": b"BUILT_WITH = 22"}

    with (project.folder / "libs/ours/build.py").open("a") as file:
        file.write('TAG = "cp311-cp311-linux_x86_64"\n')
    done = project.run("render", "spec.yaml")
    assert done.returncode == 2
    assert "ours contains compiled code, so its wheel works only on this machine" in done.stderr
    assert "ours-1.0-cp311-cp311-linux_x86_64.whl" in done.stderr


@pytest.fixture
def repository(project: Bench) -> Bench:
    """The same, with a repository that the user's git finds at another address."""
    bare = project.folder.parent / "remote/team/ours.git"
    work = project.folder.parent / "work"
    write_package(work / "sub")
    git(project, work, "init", "--quiet", "--initial-branch=main")
    git(project, work, "add", ".")
    git(project, work, "commit", "--quiet", "-m", "one")
    git(project, work, "tag", "v1")
    write_package(work / "sub", 22)
    git(project, work, "commit", "--quiet", "-a", "-m", "two")
    git(project, work, "clone", "--quiet", "--bare", str(work), str(bare))
    configuration = (
        "[user]\n  name = a\n  email = a@example.com\n"
        f'[url "file://{project.folder.parent}/remote/"]\n'
        "  insteadOf = https://git.example.com/\n"
    )
    (project.folder / "home/.gitconfig").write_text(configuration)
    return project


def git(bench: Bench, folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    return subprocess.run(
        ["git", *identity, *words],
        cwd=folder,
        env={**os.environ, "HOME": str(bench.folder / "home"), "GIT_CONFIG_NOSYSTEM": "1"},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


@pytest.mark.long
def test_a_revision_is_locked_as_its_commit_and_built(repository: Bench) -> None:
    work = repository.folder.parent / "work"
    commit = git(repository, work, "rev-parse", "v1")
    found = lock(repository, f"ours @ git+{URL}@v1#subdirectory=sub")
    (origin,) = (package.origin for package in found.packages if package.name == "ours")
    assert origin is not None
    assert (origin.git, origin.commit, origin.subdirectory) == (URL, commit, "sub")
    assert repository.run("lock", "--verify", "spec.yaml").returncode == 0
    before = (repository.folder / "spec.lock").read_bytes()
    (repository.folder / "old.lock").write_bytes(before)
    apply(repository)
    assert installed(repository).startswith("1 ")
    assert readings(repository)["source.ours"] == commit

    for revision in (commit[:12], git(repository, work, "rev-parse", "main"), "main"):
        found = lock(
            repository, f"{{name: ours, git: {URL}, rev: '{revision}', subdirectory: sub}}"
        )
        (origin,) = (package.origin for package in found.packages if package.name == "ours")
        assert origin is not None
        assert origin.commit == git(repository, work, "rev-parse", revision)

    moved = repository.run("lock", "spec.yaml", "--diff", "old.lock")
    assert f"{URL} at {commit[:12]}" in moved.stdout, moved.stdout + moved.stderr

    for package, words in {
        f"{{name: ours, git: {URL}, rev: v9}}": "has no branch, tag or commit v9",
        f"{{name: ours, git: {URL}, rev: v1}}": "set `subdirectory` to the folder of the package",
        f"{{name: ours, git: {URL}, rev: v1, subdirectory: no}}": "has no folder no",
        "ours @ git+https://git.example.com/none.git": "cannot be read",
    }.items():
        assert words in refused(repository, package, "lock"), package


def test_the_submodules_of_a_repository_are_named(repository: Bench) -> None:
    work = repository.folder.parent / "work"
    link = f"160000,{git(repository, work, 'rev-parse', 'HEAD')},third_party/fast"
    git(repository, work, "update-index", "--add", "--cacheinfo", link)
    git(repository, work, "commit", "--quiet", "-m", "three")
    git(
        repository,
        work,
        "push",
        "--quiet",
        str(repository.folder.parent / "remote/team/ours.git"),
        "main",
    )
    repository.spec(small_spec(f"ours @ git+{URL}@main#subdirectory=sub"))
    done = repository.run("lock", "spec.yaml")
    assert done.returncode == 0
    notice = f"ours is built without the submodules of {URL}: third_party/fast"
    assert notice in " ".join(done.stderr.split())


def test_pointers_of_lfs_in_a_repository_are_named(repository: Bench) -> None:
    work = repository.folder.parent / "work"
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    (work / "sub/weights.bin").write_text(pointer)
    (work / "other.bin").write_text(pointer)
    git(repository, work, "add", ".")
    git(repository, work, "commit", "--quiet", "-m", "three")
    remote = str(repository.folder.parent / "remote/team/ours.git")
    git(repository, work, "push", "--quiet", remote, "main")
    repository.spec(small_spec(f"ours @ git+{URL}@main#subdirectory=sub"))
    done = repository.run("lock", "spec.yaml")
    assert done.returncode == 0
    shown = " ".join(done.stderr.split())
    assert "ours has Git LFS pointers in place of files: sub/weights.bin; they" in shown


def test_a_commit_stays_locked_until_its_package_is_upgraded(repository: Bench) -> None:
    def commit(*words: str) -> str:
        assert repository.run("lock", "spec.yaml", *words).returncode == 0
        found = loads((repository.folder / "spec.lock").read_text(), "spec.lock")
        (origin,) = (package.origin for package in found.packages if package.name == "ours")
        assert origin is not None
        return origin.commit

    work = repository.folder.parent / "work"
    line = f"ours @ git+{URL}@main#subdirectory=sub"
    repository.spec(small_spec(line))
    first = commit()
    git(repository, work, "commit", "--quiet", "--allow-empty", "-m", "three")
    remote = str(repository.folder.parent / "remote/team/ours.git")
    git(repository, work, "push", "--quiet", remote, "main")
    repository.spec(small_spec(f"alpha\n  - {line}"))
    assert commit() == first
    assert commit("--upgrade", "ours") == git(repository, work, "rev-parse", "HEAD")


def export(bench: Bench, form: str, out: str) -> str:
    done = bench.run("export", "spec.yaml", "--format", form, "--out", out)
    assert done.returncode == 0, done.stdout + done.stderr
    return (bench.folder / out).read_text()


@pytest.mark.long
def test_exports_name_the_path_or_the_commit(repository: Bench) -> None:
    folder = repository.folder
    wheel = make_wheel(folder / "dist", "theirs", "1.0", code="X = 1\n")
    alone = PROJECT.replace('"beta"', "")
    work = folder.parent / "work"
    write_package(work / "sub", 1, alone)
    git(repository, work, "commit", "--quiet", "-a", "-m", "three")
    git(repository, work, "push", "--quiet", str(folder.parent / "remote/team/ours.git"), "main")
    write_package(folder / "libs/near", 3, alone.replace('"ours"', '"near"'))
    (folder / "libs/near/build.py").write_text('NAME, VERSION, SEEN = "near", "1.0", 3\n')
    git_line = f"ours @ git+{URL}@main#subdirectory=sub"
    found = lock(
        repository, f"./dist/{wheel.name}\n  - {{name: near, path: libs/near}}\n  - {git_line}"
    )
    (commit,) = (one.origin.commit for one in found.packages if one.origin and one.origin.git)
    (folder / "out").mkdir()

    text = export(repository, "pylock", "out/pylock.toml")
    entries = {entry["name"]: entry for entry in tomllib.loads(text)["packages"]}
    assert entries["near"] == {"name": "near", "directory": {"path": "../libs/near"}}
    vcs = {"type": "git", "url": URL, "commit-id": commit, "subdirectory": "sub"}
    assert entries["ours"] == {"name": "ours", "vcs": vcs}
    assert entries["theirs"]["wheels"][0]["path"] == f"../dist/{wheel.name}"
    uv(repository, "venv", "--quiet", "out/env")
    python = folder / "out/env/bin/python"
    uv(repository, "pip", "sync", "--quiet", "--python", str(python), "out/pylock.toml")
    shown = subprocess.run(
        [python, "-c", "import near, ours, theirs; print(near.BUILT_WITH, ours.BUILT_WITH)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.split() == ["3", "1"]

    sources = tomllib.loads(export(repository, "pyproject", "out/pyproject.toml"))["tool"]["uv"]
    assert sources["sources"] == {
        "near": {"path": "../libs/near"},
        "ours": {"git": URL, "rev": commit, "subdirectory": "sub"},
        "theirs": {"path": f"../dist/{wheel.name}"},
    }
    uv(repository, "lock", "--quiet", "--project", "out")
    bill = json.loads(export(repository, "cyclonedx", "out/bom.json"))
    purls = {part["name"]: part.get("purl") for part in bill["components"]}
    assert purls["ours"].endswith(
        f"?vcs_url=git%2Bhttps%3A//git.example.com/team/ours.git%40{commit}"
    )
    assert (purls["near"], purls["theirs"]) == (None, None)
    references = {row["ref"]: row["dependsOn"] for row in bill["dependencies"]}
    assert references["provision:spec"] == ["near==1.0", purls["ours"], "theirs==1.0"]

    refused = repository.run("export", "spec.yaml", "--format", "requirements")
    assert refused.returncode == 2
    assert "a requirements file with hashes cannot list folders or repositories" in refused.stderr
    assert "near: libs/near" in refused.stderr
    lock(repository, f"./dist/{wheel.name}")
    assert f"./dist/{wheel.name} \\\n    --hash=sha256:" in export(
        repository, "requirements", "r.txt"
    )
    uv(repository, "pip", "install", "--quiet", "--dry-run", "--python", str(python), "-rr.txt")


def uv(bench: Bench, *words: str) -> None:
    program = str(Path(sys.executable).with_name("uv"))
    variables = bench.environment(UV_DEFAULT_INDEX=bench.index)
    done = subprocess.run(
        [program, *words], cwd=bench.folder, env=variables, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_password_of_git_reaches_no_file(repository: Bench) -> None:
    secret = "hunter2hunter2"
    configuration = repository.folder / "home/.gitconfig"
    remote = f"file://{repository.folder.parent}/remote/"
    configuration.write_text(
        f'[url "{remote}"]\n  insteadOf = https://git.example.com/\n'
        f'[credential]\n  helper = "!echo password={secret}; echo username=me; :"\n'
    )
    lock(repository, f"{{name: ours, git: {URL}, rev: v1, subdirectory: sub}}")
    for path in repository.folder.rglob("*"):
        if path.is_file() and path != configuration:
            content = path.read_bytes()
            if zipfile.is_zipfile(path):
                continue
            assert secret.encode() not in content, path
