"""A report comes home: filed when it is of this notebook and follows from itself, refused with nothing written when not."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from provision.errors import LockError, ProvisionError, Refused
from provision.probe.canonical import canonical
from provision.verification.report import LIMIT
from tests.notebook_rig import RUNTIMES, Home, changed, copied, made, probed, with_colab
from tests.rig import MINOR, Bench, make_index, make_wheel

Change = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Home:
    folder = tmp_path_factory.mktemp("home")
    wheels = tuple(make_wheel(folder / "wheels", "alpha", version) for version in ("1.0", "2.0"))
    (folder / "project/home").mkdir(parents=True)
    return made(Bench(folder / "project", make_index(folder / "index", wheels)), with_colab("alpha"))


@pytest.fixture(scope="module")
def genuine(origin: Home, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return probed(origin, tmp_path_factory.mktemp("probe"))


@pytest.fixture
def home(origin: Home, tmp_path: Path) -> Home:
    return copied(origin, tmp_path / "project")


def refused(home: Home, content: bytes, **words: Any) -> ProvisionError:
    """The refusal of a report, which has written nothing."""
    before = home.snapshot()
    with pytest.raises((Refused, LockError)) as caught:
        home.receive(content, **words)
    assert home.snapshot() == before
    assert caught.value.hint
    return caught.value


def whole(error: ProvisionError) -> str:
    return f"{error.what}\n{error.why}\n{error.hint}"


def test_a_report_from_a_notebook_is_filed_and_ends_the_waiting(home: Home, genuine: bytes) -> None:
    (home.bench.folder / "report (1).json").write_bytes(genuine)
    waiting = home.bench.run("apply", "spec.yaml", "--target", "colab", "--yes")
    assert waiting.returncode == 3
    assert "rendered, not verified: its report has not come home yet" in waiting.stdout
    assert "provision report add" in waiting.stdout
    assert "colab, rendered, spec.ipynb" in home.bench.run("status", "spec.yaml").stdout
    assert home.bench.run("plan", "spec.yaml", "--target", "colab", "--detailed-exitcode").returncode == 2
    done = home.bench.run("report", "add", "report (1).json")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("VERIFIED")
    assert "filed under  spec/colab" in done.stdout
    assert (home.reports / "report.json").read_bytes() == genuine
    assert (home.reports / "report.html").read_text().lower().startswith("<!doctype html>")
    record = home.state["spec/colab#verification"]
    assert (record["verdict"], record["nonce"]) == ("verified", home.nonce)
    before = home.snapshot()
    again = home.bench.run("apply", "spec.yaml", "--target", "colab", "--yes")
    assert again.returncode == 0, again.stdout
    assert "No changes: this is the stored verdict" in again.stdout
    assert home.bench.run("plan", "spec.yaml", "--target", "colab", "--detailed-exitcode").returncode == 0
    assert "verified at" in home.bench.run("status", "spec.yaml").stdout.partition("colab  ")[2]
    assert home.snapshot() == before


def test_the_same_report_twice_changes_nothing(home: Home, genuine: bytes) -> None:
    assert home.receive(genuine).fresh
    before = home.snapshot()
    again = home.receive(json.dumps(json.loads(genuine), indent=2).encode())
    assert (again.fresh, again.exit_code) == (False, 0)
    assert home.snapshot() == before


def test_standard_input_and_json(home: Home, genuine: bytes) -> None:
    words = home.bench.argv("report", "add", "-", "--spec", "spec.yaml", "--output-format", "json")
    done = subprocess.run(words, cwd=home.bench.folder, env=home.bench.environment(), input=genuine, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["verdict"], told["target"], told["filed"], told["findings"]) == ("verified", "colab", True, [])
    assert {"what", "listed", "found"} == set(told["moved"][0])


def test_a_failed_report_is_filed_and_ends_with_1(home: Home, tmp_path: Path) -> None:
    home.bench.spec(home.path.read_text() + "paths: {data: /content/nowhere}\n")
    assert home.bench.run("apply", "spec.yaml", "--target", "colab", "--yes").returncode == 3
    received = home.receive(probed(home, tmp_path / "probe"))
    assert (received.report.verdict, received.exit_code) == ("failed", 1)
    assert home.bench.run("apply", "spec.yaml", "--target", "colab", "--yes").returncode == 1


def test_on_top_of_a_runtime_packages_of_others_are_nobodys_business(bench: Bench, tmp_path: Path) -> None:
    if MINOR not in RUNTIMES:
        pytest.skip(f"no runtime has had Python {MINOR}")
    home = made(bench, with_colab("alpha", runtime=RUNTIMES[MINOR], isolation="system"))
    assert home.python is not None
    others = next((home.python.parent.parent / "lib").glob("python*/site-packages")) / "other-1.0.dist-info"
    others.mkdir()
    (others / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    content = probed(home, tmp_path / "probe")
    assert next(one["value"] for one in json.loads(content)["readings"] if one["key"] == "packages.unlocked") == ["other 1.0"]
    assert home.receive(content).exit_code == 0
    assert "P03 says pass" in refused(home, changed(content, _reading("packages.elsewhere", ["alpha"]))).why


def test_hostile_words_in_a_report_reach_no_terminal_and_no_page(home: Home, genuine: bytes) -> None:
    words = "\x1b[31m\u202e<script>alert(1)</script>" + "x" * 60_000
    hostile = changed(changed(genuine, _check("P02", message=words, cause=words, fix=words)), _at("stages", 0, "tail", value=words))
    (home.bench.folder / "r.json").write_bytes(hostile)
    done = home.bench.run("report", "add", "r.json", "-v")
    assert done.returncode == 0, done.stderr
    for text in (done.stdout, done.stderr, (home.reports / "report.html").read_text()):
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "<script>" not in text or text is done.stdout


def test_what_is_simulated_is_never_verified(home: Home, genuine: bytes, tmp_path: Path) -> None:
    def lie(document: dict[str, Any]) -> None:
        document["subject"]["simulated"] = ["everything"]

    assert "its verdict is verified, and from its own checks follows simulated, and not real is everything" in refused(home, changed(genuine, lie)).why
    received = home.receive(probed(home, tmp_path / "probe", simulated=["a machine"]))
    assert (received.report.verdict, received.exit_code) == ("simulated", 3)
    assert home.bench.run("apply", "spec.yaml", "--target", "colab", "--yes").returncode == 3


def _at(*route: str | int, value: Any) -> Change:
    def change(document: dict[str, Any]) -> None:
        for part in route[:-1]:
            document = document[part]
        document[route[-1]] = value

    return change


def _check(wanted: str, **values: Any) -> Change:
    def change(document: dict[str, Any]) -> None:
        next(one for one in document["checks"] if one["id"] == wanted).update(values)

    return change


def _reading(wanted: str, value: Any, *, key: str = "", kind: str = "") -> Change:
    def change(document: dict[str, Any]) -> None:
        row = next(one for one in document["readings"] if one["key"] == wanted)
        row |= {"key": key or wanted, "value": value, "class": kind or row["class"]}

    return change


def _without(part: str, key: str, wanted: str) -> Change:
    def change(document: dict[str, Any]) -> None:
        document[part] = [one for one in document[part] if one[key] != wanted]
        document["verdict"]["counts"] = {status: sum(one["status"] == status for one in document["checks"]) for status in document["verdict"]["counts"]}

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_at("verdict", "result", value="failed"), "its verdict is failed, and from its own checks follows verified"),
        (_at("verdict", "counts", "pass", value=99), "the counts of its checks"),
        (_at("verdict", "first_cause", value="P02"), "its first cause is P02"),
        (_at("verdict", "sentence", value="All is well."), "its sentence is 'All is well.'"),
        (_check("P02", status="fail"), "from its own checks follows failed"),
        (_check("P02", required=False), "P02 is required"),
        (_check("P02", title="nothing"), "what P02 says of itself was changed"),
        (_without("checks", "id", "P02"), "P02 is missing"),
        (_at("checks", 0, "id", value="H02"), "H01 is missing"),
        (lambda document: document["checks"].append(document["checks"][0]), "other checks than this verification asks"),
        (_reading("host.platform", "linux-aarch64"), "H01 says pass, and from its readings follows fail"),
        (_reading("packages.unmet", ["alpha 1.0 needs beta"]), "P04 says pass, and from its readings follows fail"),
        (_without("readings", "key", "host.platform"), "H01 says pass, and there is no reading host.platform"),
        (_reading("host.platform", {"a": 1}), "H01 says pass, and"),
        (_reading("python.minor", "3.9"), "P01 passes, and its readings tell Python 3.9"),
        (_reading("python.prefix_matches", False), "P01 passes"),
        (_reading("package.alpha", "1.0"), "P02 passes, and the report tells of packages that differ"),
        (_at("packages", "differences", value=[{"name": "alpha"}]), "P02 passes"),
        (_at("packages", "locked", value=7), "it looked at 7 locked packages, and 1 were promised"),
        (_reading("packages.altered", ["alpha: was changed"]), "P07 passes, and the report tells of altered files"),
        (_reading("host.cpus", 2, kind="noise"), "the reading host.cpus is of class noise, and a probe writes context"),
        (_reading("host.cpus", 2, key="host.cpus_there"), "host.cpus_there is of class context, and a probe writes none of that name"),
        (_at("readings", 0, "key", value="zzz"), "in another order"),
        (_at("subject", "proof", value="hf-trainer"), "its proof is hf-trainer"),
        (_at("tier", value="inventory"), "its tier is inventory"),
    ],
)
def test_a_forged_report_is_refused(home: Home, genuine: bytes, change: Change, words: str) -> None:
    error = refused(home, changed(genuine, change))
    assert error.what == "report.json does not follow from itself"
    assert words in error.why


def test_an_identity_that_does_not_fit_its_readings_is_refused(home: Home, genuine: bytes) -> None:
    def other(document: dict[str, Any]) -> None:
        document["digests"]["identity"] = "sha256:" + "0" * 64

    assert "its identity digest is sha256:0000" in refused(home, changed(genuine, other, sealed=False)).why


@pytest.mark.parametrize("change", [_at("verdict", "result", value="failed"), _check("P02", message="x"), _at("more", value=1)])
def test_a_report_that_was_edited_is_refused(home: Home, genuine: bytes, change: Change) -> None:
    assert refused(home, changed(genuine, change, sealed=False)).what == "report.json was edited or damaged"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it is empty"),
        (b"\x00\xff\xfe", "it is not JSON"),
        (b"{}", "is no report of provision"),
        (b"[1, 2]", "is no report of provision"),
        (b'{"schema": "provision.report/2"}', "written by another version of provision"),
        (b'{"schema": "provision.cell-status/1"}', "is the cell's status, not its report"),
        (b'{"schema": "provision.report/1"}', "tier is missing"),
        (b'{"schema": "provision.report/1", "schema": 1}', "stands twice"),
        (b'{"schema": NaN}', "NaN is no number"),
        (b'{"schema": 1e999}', "out of all measure"),
        (b'{"schema": ' + b"9" * 5000 + b"}", "it is not JSON"),
        (b"PK\x03\x04rest", "is an archive"),
        (b"[" * 100_000 + b"]" * 100_000, "nested"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested"),
        (b"[" * 60 + b"]" * 60, "nested more than 50 deep"),
        (b'{"schema": "' + b"x" * 70_000 + b'"}', "a text of 70000 characters"),
        (b" " * (LIMIT + 1), "too big for a report"),
        (b'{"schema": "\x1b[31m\xe2\x80\xae\\ud800"}', "it is not JSON"),
        (b'{"schema": "\\u001b[31m\\u202e\\ud800"}', "is no report of provision"),
    ],
)
def test_what_is_no_report_is_refused(home: Home, content: bytes, words: str) -> None:
    error = refused(home, content)
    assert words in whole(error)
    assert "\x1b" not in whole(error)
    assert "\u202e" not in whole(error)


def test_a_download_that_was_cut_short_is_refused(home: Home, genuine: bytes) -> None:
    for length in (1, len(genuine) // 2, len(genuine) - 3):
        assert "the download was cut short" in refused(home, genuine[:length]).why


@pytest.mark.parametrize("part", ["tool", "subject", "spec", "lock", "readings", "checks", "stages", "packages", "verdict", "digests"])
@pytest.mark.parametrize("value", [None, [], {}, [1], [{}], "text", 7])
def test_a_part_of_another_form_is_refused(home: Home, genuine: bytes, part: str, value: object) -> None:
    document = {**json.loads(genuine), part: value}
    assert refused(home, canonical(document).encode()).what


@pytest.mark.parametrize(
    ("change", "what", "words"),
    [
        (_at("subject", "nonce", value="f" * 32), "of another rendering of the notebook of spec/colab", f"its nonce is {'f' * 32}, ours is "),
        (_at("lock", "digest", value="sha256:other"), "is not of spec/colab", "its lock digest is sha256:other, ours is sha256:"),
        (_at("lock", "environment_digest", value="sha256:e"), "is not of spec/colab", "its environment digest is sha256:e, ours is sha256:"),
        (_at("spec", "name", value="another"), "is not of spec/colab", "its spec is another, ours is spec"),
        (_at("spec", "digest", value="sha256:s"), "is not of spec/colab", "its spec digest is sha256:s, ours is sha256:"),
        (_at("subject", "target", value="gpu"), "is not of spec/colab", "its target is gpu, ours is colab"),
        (_at("subject", "kind", value="local"), "is not of spec/colab", "its kind is local, ours is colab"),
    ],
)
def test_a_foreign_report_is_refused_with_both_values(home: Home, genuine: bytes, change: Change, what: str, words: str) -> None:
    error = refused(home, changed(genuine, change), target="colab")
    assert what in error.what
    assert words in error.why


def test_the_report_of_another_place_on_this_machine_is_foreign(home: Home, origin: Home) -> None:
    error = refused(home, (origin.bench.own / "reports/spec.here/report.json").read_bytes(), target="colab")
    assert "its target is here, ours is colab; its kind is local, ours is colab" in error.why


def test_a_report_of_an_earlier_lock_is_old_and_its_verdict_void(home: Home, genuine: bytes) -> None:
    home.receive(genuine)
    home.bench.spec(with_colab("alpha==1.0"))
    assert "the spec moved since the notebook was made" in refused(home, genuine).what
    done = home.bench.run("apply", "spec.yaml", "--target", "colab", "--yes")
    assert done.returncode == 3, done.stderr
    assert "(verified) is of an earlier notebook, and is void" in done.stdout
    status = home.bench.run("status", "spec.yaml").stdout
    assert "verified at" in status
    assert "is of an earlier notebook, and is void" in status
    error = refused(home, genuine)
    assert "of another rendering of the notebook of spec/colab" in error.what
    assert "its lock digest is" in error.why


def test_a_report_of_other_promises_is_old(home: Home, genuine: bytes) -> None:
    home.bench.spec(home.path.read_text() + "env: {MODE: fast}\n")
    error = refused(home, genuine)
    assert "is of an earlier state of spec/colab" in error.what
    assert home.nonce in error.why


def test_an_older_report_does_not_replace_a_newer_one(home: Home, genuine: bytes) -> None:
    home.receive(genuine)
    filed = (home.reports / "report.json").read_bytes()
    error = refused(home, changed(genuine, _at("subject", "created_utc", value="2026-01-01T00:00:00Z")))
    assert error.what == "report.json is older than the report that is filed"
    assert "2026-01-01T00:00:00Z" in error.why
    assert (home.reports / "report.json").read_bytes() == filed
    newer = changed(genuine, _at("subject", "created_utc", value=json.loads(genuine)["subject"]["created_utc"][:-2] + "9Z"))
    assert home.receive(newer).exit_code == 0


@pytest.mark.parametrize(("when", "words"), [("2199-01-01T00:00:00Z", "lies in the future"), ("yesterday", "is damaged"), ("", "is damaged")])
def test_a_time_that_cannot_be_is_refused(home: Home, genuine: bytes, when: str, words: str) -> None:
    assert words in refused(home, changed(genuine, _at("subject", "created_utc", value=when))).what


def test_a_report_of_another_probe_is_refused(home: Home, genuine: bytes) -> None:
    assert refused(home, changed(genuine, _at("tool", "probe_sha256", value="0" * 64))).what == "report.json was written by another probe"


def test_a_report_of_some_checks_only_is_refused(home: Home, genuine: bytes) -> None:
    def partial(document: dict[str, Any]) -> None:
        document["checks"] = [one for one in document["checks"] if one["id"] == "P02"]
        document["verdict"] |= {"result": "unverified", "counts": {"pass": 1, "fail": 0, "warn": 0, "skip": 0, "unknown": 0}}

    assert "are missing, which this verification asks" in refused(home, changed(genuine, partial)).why


def test_the_spec_is_found_by_the_nonce_or_asked_for(home: Home, genuine: bytes, tmp_path: Path) -> None:
    bench = home.bench
    (bench.folder / "r.json").write_bytes(genuine)
    bench.spec(with_colab("alpha").replace("colab:", "far:"), "other.yaml")
    assert bench.run("apply", "other.yaml", "--target", "far", "--yes").returncode == 3
    strange = changed(genuine, _at("subject", "nonce", value="e" * 32))
    strange = changed(strange, _at("subject", "target", value="nowhere"))
    (bench.folder / "strange.json").write_bytes(strange)
    done = bench.run("report", "add", "strange.json")
    assert done.returncode == 2
    assert "nothing here waits for strange.json" in done.stderr
    assert "notebooks were made here of other, spec" in done.stderr
    assert "--spec" in done.stderr
    assert bench.run("report", "add", "r.json").returncode == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    lost = Bench(elsewhere, bench.index)
    (elsewhere / "r.json").write_bytes(genuine)
    done = lost.run("report", "add", "r.json")
    assert done.returncode == 2
    assert "no notebook was made of a spec in this folder" in done.stderr
    assert list(elsewhere.iterdir()) == [elsewhere / "r.json"]
    assert lost.run("report", "add", "r.json", "--spec", str(home.path)).returncode == 0


def test_a_target_that_takes_no_report_says_so(home: Home, genuine: bytes) -> None:
    assert "spec/here takes no report" in refused(home, genuine, target="here").what
    assert "has no target nowhere" in refused(home, genuine, target="nowhere").what


def test_without_a_notebook_nothing_is_filed(home: Home, genuine: bytes) -> None:
    assert home.bench.run("destroy", "spec.yaml", "--target", "colab", "--yes").returncode == 0
    assert "no notebook was made for spec/colab" in refused(home, genuine, target="colab").what


def test_files_that_cannot_be_read_end_with_2(home: Home, genuine: bytes) -> None:
    (home.bench.folder / "big.json").write_bytes(b" " * (LIMIT + 1))
    for name in ("nowhere.json", ".", "big.json"):
        done = home.bench.run("report", "add", name)
        assert done.returncode == 2, name
        assert "Traceback" not in done.stderr


def test_verify_and_run_say_where_it_is_done(home: Home) -> None:
    done = home.bench.run("verify", "spec.yaml", "--target", "colab")
    assert done.returncode == 2
    assert "is verified in its notebook" in done.stderr
    assert "provision report add" in done.stderr
    assert "is a notebook, and programs run in it" in home.bench.run("run", "spec.yaml", "--target", "colab", "--", "true").stderr


def test_verify_again_asks_for_another_run_and_keeps_the_verdict(home: Home, genuine: bytes) -> None:
    home.receive(genuine)
    done = home.bench.run("apply", "spec.yaml", "--target", "colab", "--yes", "--verify")
    assert done.returncode == 3
    assert "asked for with --verify" in done.stdout
    assert home.bench.run("apply", "spec.yaml", "--target", "colab", "--yes").returncode == 0


def test_files_written_again_keep_the_verdict(home: Home, genuine: bytes) -> None:
    home.receive(genuine)
    (home.bench.folder / "spec.colab.py").unlink()
    assert home.bench.run("plan", "spec.yaml", "--target", "colab", "--detailed-exitcode").returncode == 2
    assert home.bench.run("apply", "spec.yaml", "--target", "colab", "--yes").returncode == 0
    assert (home.bench.folder / "spec.colab.py").exists()


def test_all_targets_end_with_3_until_the_report_is_home(origin: Home, genuine: bytes) -> None:
    done = origin.bench.run("apply", "spec.yaml", "--all", "--yes", "--output-format", "json")
    assert done.returncode == 3, done.stderr
    told = json.loads(done.stdout)
    assert [one["target"] for one in told["results"]] == ["here"]
    (waiting,) = told["waiting"]
    assert (waiting["target"], waiting["notebook"], waiting["nonce"]) == ("colab", "spec.ipynb", origin.nonce)
    assert json.loads(genuine)["subject"]["nonce"] == origin.nonce


def test_destroy_removes_what_was_written_and_what_came_home(home: Home, genuine: bytes) -> None:
    home.receive(genuine)
    assert home.bench.run("destroy", "spec.yaml", "--target", "colab", "--yes").returncode == 0
    assert not home.reports.exists()
    assert not (home.bench.folder / "spec.ipynb").exists()
    assert not [key for key in home.state if key.startswith("spec/colab#")]
