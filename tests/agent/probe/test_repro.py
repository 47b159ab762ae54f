"""A failed check as a program of its own: it ends with 1 while the fault is there, and with 0 when
it is mended. The reports are the real probe's.
"""

from __future__ import annotations

import ast
import json
import os
import py_compile
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from provision.agent.probe.checks import CHECKS
from provision.errors import Refused
from provision.verification import Report, read_report
from provision.verification.repro import (
    CASE_PLACEHOLDER,
    REPRODUCIBLE_STATUSES,
    build_repro_program,
)
from provision.verification.repro.short_programs import SHORT_PROGRAMS
from tests import fork_server
from tests.agent.probe.bench import Environment, clean_environ, write_package
from tests.support import require

ROOT = Path(__file__).parents[3]
TEMPLATES = ROOT / "templates" / "repro"
RECORDED = ROOT / "tests" / "reports" / "recorded"
MAX_LINES = 80
"""Of a short program: it is read in an issue before it is run."""


# The programs


@pytest.mark.parametrize("path", sorted(TEMPLATES.glob("*.py")), ids=lambda path: path.stem)
def test_a_program_is_short_whole_and_has_one_place_for_its_values(
    path: Path, tmp_path: Path
) -> None:
    text = path.read_text(encoding="utf-8")
    py_compile.compile(str(path), cfile=str(tmp_path / "compiled"), doraise=True)
    ast.parse(text, feature_version=(3, 10))

    assert len(text.splitlines()) <= MAX_LINES
    assert text.count(CASE_PLACEHOLDER) == 1
    assert "provision" not in text
    assert path.stem in {program for program, _ in SHORT_PROGRAMS.values()} | {"packed_probe"}


def test_the_short_programs_are_of_known_checks() -> None:
    assert set(SHORT_PROGRAMS) <= {check.id for check in CHECKS}
    assert all((TEMPLATES / f"{program}.py").is_file() for program, _ in SHORT_PROGRAMS.values())


@pytest.mark.parametrize("identity", sorted({check.id for check in CHECKS} - set(SHORT_PROGRAMS)))
def test_a_report_alone_without_a_short_program_is_refused_with_the_way_out(identity: str) -> None:
    document = json.loads((RECORDED / "small-shm.json").read_bytes())
    document["checks"][0].update(id=identity, status="fail")

    with pytest.raises(
        Refused, match=f"the report alone is not sufficient to reproduce {identity}"
    ) as refused:
        build_repro_program(Report(document), identity, {})

    assert "--spec SPEC --target NAME" in refused.value.hint


def written(report: Report, name: str) -> str:
    try:
        return build_repro_program(report, name, {})
    except Refused as error:
        return f"refused: {error.why}"


@pytest.mark.parametrize(
    "path",
    sorted([*RECORDED.glob("*.json"), *RECORDED.with_name("simulated").glob("*.json")]),
    ids=lambda path: path.stem,
)
def test_every_recorded_failure_has_a_program_or_a_reason(path: Path, tmp_path: Path) -> None:
    report = read_report(path.read_bytes(), path.name)
    for name in [
        check["id"]
        for check in report.document["checks"]
        if check["status"] in REPRODUCIBLE_STATUSES
    ]:
        text = written(report, name)
        if text.startswith("refused: "):
            assert len(text) > 30
            continue
        (tmp_path / "repro.py").write_text(text)
        py_compile.compile(str(tmp_path / "repro.py"), doraise=True)
        assert len(text.splitlines()) <= MAX_LINES


def test_what_a_report_says_is_data_and_nothing_else(tmp_path: Path) -> None:
    document = json.loads((RECORDED / "small-shm.json").read_bytes())
    hostile = (
        '\'}; import os; os.system(\'touch owned\') #\n""" {"CASE": "HERE"} \x1b[2J \u202e ${HOME}'
    )
    document["checks"][0].update(id=f"P06:{hostile}", message=hostile, status="fail")

    text = build_repro_program(Report(document), f"P06:{hostile}", {})

    (tmp_path / "repro.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "repro.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert not (tmp_path / "owned").exists()
    assert "\x1b" not in text
    assert "\u202e" not in text


@pytest.mark.parametrize("odd", [None, 7, "x", [], {}, [1], {"a": None}])
def test_an_odd_report_is_refused_and_breaks_nothing(odd: Any) -> None:
    document = json.loads((RECORDED / "small-shm.json").read_bytes())
    for identity in SHORT_PROGRAMS:
        document["checks"][0].update(
            id=identity, status="fail", expected=odd, observed=odd, message=str(odd)
        )
        document["packages"] = {"differences": odd}
        try:
            text = build_repro_program(
                Report(document),
                identity,
                {"paths": odd, "training": odd, "gpu": odd},
            )
        except Refused:
            continue
        compile(text, identity, "exec")


# Faults, as the probe has found them


def found(
    environment: Environment, name: str, environ: dict[str, str] | None = None, **changes: Any
) -> str:
    """Verify, and return the program for a check that has failed: as the command writes it."""
    _, report, said = environment.verify(environ=environ, **changes)
    assert report, said
    done = fork_server.run(
        [*fork_server.ARGV, "report", "repro", str(environment.root / "report.json"), name],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def ends(
    environment: Environment, program: str, environ: dict[str, str] | None = None
) -> tuple[int, str]:
    script = environment.root / "repro.py"
    script.write_text(program)
    done = subprocess.run(
        [environment.python, str(script)],
        capture_output=True,
        text=True,
        env={**clean_environ(), **(environ or {})},
        cwd=environment.root,
    )
    assert done.returncode in (0, 1, 2), done.stderr
    return done.returncode, done.stdout + done.stderr


def test_a_version_that_is_not_the_locked_one(environment: Environment) -> None:
    environment.add("alpha", version="1.0")
    environment.packages["alpha"] = "2.0"
    program = found(environment, "P02")

    assert ends(environment, program)[0] == 1
    site = next(environment.root.glob("lib/python*/site-packages"))
    shutil.rmtree(site / "alpha-1.0.dist-info")
    shutil.rmtree(site / "alpha")
    write_package(site, "alpha", "", "2.0")
    assert ends(environment, program)[0] == 0


def test_a_package_that_cannot_be_imported(environment: Environment) -> None:
    environment.add("beta", code="import nowhere_to_be_found\n")
    program = found(environment, "P06:beta")

    code, said = ends(environment, program)
    assert (code, "No module named 'nowhere_to_be_found'" in said) == (1, True)
    next(environment.root.glob("lib/python*/site-packages/beta/__init__.py")).write_text("")
    assert ends(environment, program) == (0, "import beta works\n")


def test_a_folder_that_cannot_be_written(environment: Environment, tmp_path: Path) -> None:
    folder = tmp_path / "out put"
    program = found(environment, "W01", paths={"output": str(folder)})

    assert ends(environment, program)[0] == 1
    folder.write_text("a file in its place")
    assert ends(environment, program)[0] == 1
    folder.unlink()
    folder.mkdir()
    assert ends(environment, program)[0] == 0
    assert list(folder.iterdir()) == []


def test_a_requirement_that_is_not_met(environment: Environment) -> None:
    environment.add("alpha", version="1.0").add("gamma", requires="alpha>=2")
    program = found(environment, "P04")

    assert ends(environment, program)[0] == 1
    needing = next(environment.root.glob("lib/python*/site-packages/gamma-1.0.dist-info/METADATA"))
    text = needing.read_text()
    needing.write_text(text.replace("alpha>=2", "alpha>=1"))
    assert ends(environment, program)[0] == 0
    needing.write_text(text)
    next(
        environment.root.glob("lib/python*/site-packages/alpha-1.0.dist-info/METADATA")
    ).write_text("Metadata-Version: 2.1\nName: alpha\nVersion: 2.0\n")
    assert ends(environment, program)[0] == 0


def test_a_module_in_the_way(environment: Environment, tmp_path: Path) -> None:
    environment.add("alpha")
    (tmp_path / "shadow" / "alpha").mkdir(parents=True)
    (tmp_path / "shadow" / "alpha" / "__init__.py").write_text("")
    there = {"PYTHONPATH": str(tmp_path / "shadow")}
    shadowed, variable = found(environment, "P03", there), found(environment, "E01", there)

    assert ends(environment, shadowed, there)[0] == 1
    assert ends(environment, shadowed)[0] == 0
    assert ends(environment, variable, there)[0] == 1
    assert ends(environment, variable)[0] == 0


def test_the_driver_may_stay_on_the_path_of_libraries(
    environment: Environment, tmp_path: Path
) -> None:
    (tmp_path / "driver").mkdir()
    (tmp_path / "driver/libcuda.so.1").touch()
    driver = f"{tmp_path}/driver"
    program = found(environment, "E01", {"LD_LIBRARY_PATH": f"{driver}:/nowhere/lib64"})

    broken = {"LD_LIBRARY_PATH": f"{driver}:/nowhere/lib64"}
    assert ends(environment, program, broken)[0] == 1
    assert ends(environment, program, {"LD_LIBRARY_PATH": driver})[0] == 0


def test_a_file_that_was_changed(environment: Environment) -> None:
    environment.add("alpha", code="1\n")
    changed = next(environment.root.glob("lib/python*/site-packages/alpha/__init__.py"))
    changed.write_text("1 + 1\n")
    program = found(environment, "P07")

    assert ends(environment, program)[0] == 1
    changed.write_text("1\n")
    assert ends(environment, program)[0] == 0


def test_a_variable_that_is_declared_otherwise(environment: Environment) -> None:
    program = found(environment, "E02", env={"MODE": "fast"})

    assert ends(environment, program, {"MODE": "slow"})[0] == 1
    assert ends(environment, program, {"MODE": "fast"})[0] == 0


def test_another_python(environment: Environment) -> None:
    program = found(environment, "P01", python={"version": "3.99", "prefix": str(environment.root)})

    assert ends(environment, program)[0] == 1
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert ends(environment, program.replace("3.99", minor))[0] == 0


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("check", "changes", "wrong", "fits"),
    [
        ("H01", {"platform": "macos-arm64"}, "'macos-arm64'", "'linux-x86_64'"),
        ("H02", {"glibc_min": "9.9"}, "'9.9'", "'2.17'"),
        ("H04", {"training__dataloader_workers": 9999}, "9999", "1"),
        ("H05", {"requires__ram_bytes": 2**59}, str(2**59), "1"),
        ("H06", {"requires__disk_bytes": 2**59}, str(2**59), "1"),
        ("H07", {"requires__shm_bytes": 2**59}, str(2**59), "1"),
    ],
)
def test_a_machine_that_is_smaller_or_another(
    environment: Environment, check: str, changes: dict[str, Any], wrong: str, fits: str
) -> None:
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        pytest.skip("written for Linux on x86_64")
    program = found(environment, check, **changes)
    head, values = program.split("'expectations':", 1)

    assert ends(environment, program)[0] == 1
    assert wrong in values
    assert ends(environment, f"{head}'expectations':{values.replace(wrong, fits)}")[0] == 0


def test_shared_memory_that_is_small(environment: Environment) -> None:
    require(
        "root",
        os.geteuid() == 0 and shutil.which("unshare") is not None,
        "a small /dev/shm is mounted in a namespace, which needs root and unshare",
    )
    document = environment.document(
        requires__shm_bytes=2**30, python={"version": "3", "prefix": ""}
    )
    program = build_repro_program(
        read_report((RECORDED / "small-shm.json").read_bytes(), "small-shm"), "H07", document
    )
    script = environment.root / "repro.py"
    script.write_text(program)
    small = f"mount -t tmpfs -o size=64m tmpfs /dev/shm && exec {environment.python} {script}"
    done = subprocess.run(["unshare", "--mount", "sh", "-c", small], capture_output=True, text=True)

    assert done.returncode == 1, done.stderr
    assert "/dev/shm has only 64 MiB, but 1 GiB is required" in done.stdout
    large = small.replace("size=64m", "size=2g")
    assert (
        subprocess.run(["unshare", "--mount", "sh", "-c", large], capture_output=True).returncode
        == 0
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    require("cc", compiler is not None, "there is no C compiler here to make a libnvidia-ml with")
    folder = tmp_path_factory.mktemp("nvml")
    argv = [
        str(compiler),
        "-shared",
        "-fPIC",
        "-Wl,-soname,libnvidia-ml.so.1",
        "-o",
        str(folder / "libnvidia-ml.so.1"),
    ]
    subprocess.run(
        [*argv, str(Path(__file__).with_name("fake_nvml.c"))], check=True, capture_output=True
    )
    return folder


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("check", "broken"),
    [
        ("D02", {"FAKE_NVML_DRIVER": "535.261.03"}),
        ("D01", {"FAKE_NVML": "init=9"}),
        ("D01", {"FAKE_NVML": "count=2"}),
        ("D01", {"FAKE_NVML": "handle=15"}),
        ("D05", {"FAKE_NVML": "uncorrected=3"}),
        ("D05", {"FAKE_NVML": "remap_pending=1"}),
        ("D05", {"FAKE_NVML": "remap_failed=1"}),
        ("D07", {"FAKE_NVML": "recovery=2"}),
        ("D07", {"FAKE_NVML": "fabric=1"}),
        ("D07", {"FAKE_NVML": "fabric=3;fabric_status=5"}),
        ("D06", {"FAKE_NVML": "reasons=72"}),
        ("D08", {"FAKE_NVML": "used_mib=4000"}),
    ],
)
def test_a_driver_or_a_card(
    environment: Environment, library: Path, check: str, broken: dict[str, str]
) -> None:
    there = {"LD_LIBRARY_PATH": str(library)}
    program = found(
        environment,
        check,
        {**there, **broken},
        gpu={"type": "L4", "count": 1},
        tier="inventory",
        requires__driver=">=580",
    )

    assert ends(environment, program, {**there, **broken})[0] == 1
    mended = {**there, "FAKE_NVML": "recovery=0;fabric=3"} if check == "D07" else there
    assert ends(environment, program, mended)[0] == 0


def test_no_driver_at_all(environment: Environment) -> None:
    program = found(
        environment,
        "D01",
        {"PATH": "/usr/bin:/bin"},
        gpu={"type": "L4", "count": 1},
        tier="inventory",
    )

    assert ends(environment, program) == (
        1,
        "no NVIDIA driver found: libnvidia-ml.so.1 is missing\n",
    )


# With torch and transformers


@pytest.fixture
def failed() -> Callable[..., Report]:
    """A recorded report in which a check has failed as a judge would say it."""

    def made(identity: str, expected: Any, observed: Any = None, message: str = "") -> Report:
        document = json.loads((RECORDED / "quickstart.json").read_bytes())
        (check,) = (one for one in document["checks"] if one["id"] == identity)
        check.update(status="fail", expected=expected, observed=observed, message=message)
        return Report(document)

    return made


def runs(python: str, program: str, folder: Path, **variables: str) -> tuple[int, str]:
    (folder / "repro.py").write_text(program)
    environ = {
        **clean_environ(),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "CUDA_VISIBLE_DEVICES": "",
        **variables,
    }
    done = subprocess.run(
        [python, "repro.py"], cwd=folder, capture_output=True, text=True, env=environ, timeout=600
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.hf
@pytest.mark.parametrize(
    ("check", "broken", "whole"),
    [
        ("R03", "float16", "bfloat16"),  # fp16 is accepted without a card, and ignored
    ],
)
def test_what_torch_or_the_training_is_otherwise(
    failed: Callable[..., Report],
    hf_python: str,
    tmp_path: Path,
    check: str,
    broken: Any,
    whole: Any,
) -> None:
    code, said = runs(hf_python, build_repro_program(failed(check, broken), check, {}), tmp_path)
    assert code == 1, said
    assert "Traceback" not in said

    code, said = runs(hf_python, build_repro_program(failed(check, whole), check, {}), tmp_path)
    assert code == 0, said


@pytest.mark.long(minutes=True)
@pytest.mark.hf
def test_programs_of_torch_hold_where_nothing_is_wrong_and_fail_where_something_is(
    failed: Callable[..., Report], hf_python: str, tmp_path: Path
) -> None:
    products = build_repro_program(failed("N01", {"fp32": 2e-6, "bf16": 4.5e-3}), "N01", {})
    assert runs(hf_python, products, tmp_path)[0] == 0
    assert runs(hf_python, products.replace("'bf16': 0.0045", "'bf16': 1e-9"), tmp_path)[0] == 1

    signature, twice = (
        build_repro_program(failed("N02", 2e-6), "N02", {}),
        build_repro_program(failed("N06", True), "N06", {}),
    )
    assert runs(hf_python, signature, tmp_path)[0] == 0
    assert "bf16 on" not in runs(hf_python, signature, tmp_path)[1]
    assert runs(hf_python, signature.replace("2e-06", "1e-09"), tmp_path)[0] == 1
    assert runs(hf_python, twice, tmp_path)[0] == 0
    assert (
        runs(
            hf_python,
            twice.replace("for _ in range(2))", "for right in (right, right + 1))"),
            tmp_path,
        )[0]
        == 1
    )


@pytest.mark.long(minutes=True)
@pytest.mark.hf
def test_programs_of_the_training(
    failed: Callable[..., Report], hf_python: str, tmp_path: Path
) -> None:
    refused = failed(
        "R01", ["save_strategy"], "ValueError: 'sometimes' is not a valid SaveStrategy"
    )
    code, said = runs(
        hf_python,
        build_repro_program(
            refused, "R01", {"training": {"arguments": {"save_strategy": "sometimes"}}}
        ),
        tmp_path,
    )
    assert (code, "sometimes" in said) == (1, True)
    assert (
        runs(
            hf_python,
            build_repro_program(
                refused, "R01", {"training": {"arguments": {"save_strategy": "steps"}}}
            ),
            tmp_path,
        )[0]
        == 0
    )
    code, said = runs(hf_python, build_repro_program(failed("R04", []), "R04", {}), tmp_path)
    assert code == 0, said
    learns = build_repro_program(failed("R02", 0.5), "R02", {})
    assert runs(hf_python, learns, tmp_path)[0] == 0
    assert (
        runs(hf_python, learns.replace('"learning_rate": 7e-3', '"learning_rate": 0.0'), tmp_path)[
            0
        ]
        == 1
    )
    frozen = learns.replace(
        "    initial = ", "    model.model.norm.requires_grad_(False)\n    initial = "
    )
    code, said = runs(hf_python, frozen, tmp_path)
    assert (code, "weights that did not change: model.norm.weight" in said) == (1, True), said
    with pytest.raises(Refused, match="alone is not sufficient"):
        build_repro_program(failed("R06", [], ["optimizer.pt: EOFError: it ends early"]), "R06", {})
    broken = build_repro_program(failed("R06", [], ["optimizer.pt is missing"]), "R06", {}).replace(
        "'optimizer.pt'", "'nothing.pt'"
    )
    assert runs(hf_python, broken, tmp_path)[0] == 1


def test_a_compiler_that_is_not_there(tmp_path: Path) -> None:
    require("cc", shutil.which("g++") is not None, "there is no C++ compiler here")
    document = json.loads((RECORDED / "small-shm.json").read_bytes())
    document["checks"][0].update(id="K01", status="fail", expected="g++, Python.h", observed=None)
    program = build_repro_program(Report(document), "K01", {})

    assert runs(sys.executable, program, tmp_path, PATH="/nowhere") == (
        1,
        "no compiler on the PATH: looked for g++, clang++\n",
    )
    assert runs(sys.executable, program, tmp_path, CXX="", PATH=os.environ["PATH"])[0] == 0
    assert (
        runs(
            sys.executable,
            program.replace("Python.h>", "Python_of_nowhere.h>"),
            tmp_path,
            PATH=os.environ["PATH"],
        )[0]
        == 1
    )


# The command


def test_the_command_writes_a_file_and_says_so(tmp_path: Path) -> None:
    done = fork_server.run(
        [
            *fork_server.ARGV,
            "report",
            "repro",
            str(RECORDED / "shadowed-package.json"),
            "P06:accelerate",
            "--out",
            "repro.py",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stdout) == (0, "")
    assert "wrote repro.py" in done.stderr
    assert "'about': 'P06:accelerate " in (tmp_path / "repro.py").read_text()


def test_the_program_as_json() -> None:
    words = [
        *fork_server.ARGV,
        "report",
        "repro",
        str(RECORDED / "shadowed-package.json"),
        "P06:accelerate",
        "--output-format",
        "json",
    ]
    told = json.loads(fork_server.run(words, capture_output=True, text=True, check=True).stdout)

    assert (told["check"], told["file"]) == ("P06:accelerate", None)
    compile(told["program"], "P06", "exec")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("small-shm.json", "H01"), "H01 did not fail"),
        (("small-shm.json", "X99"), "the report has no check X99"),
        (("nothing.json", "H01"), "cannot read"),
        (("numpy-abi.json", "P07"), "the report alone is not sufficient to reproduce P07"),
        (("quickstart.json", "P02"), "no check failed"),
    ],
)
def test_bad_input(words: tuple[str, str], said: str) -> None:
    done = fork_server.run(
        [*fork_server.ARGV, "report", "repro", str(RECORDED / words[0]), words[1]],
        capture_output=True,
        text=True,
    )

    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
