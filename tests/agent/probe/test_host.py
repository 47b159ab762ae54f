"""Reading a host from a made-up root folder: control groups of both versions, mounts, and paths
that cannot be written.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from provision.agent.probe.context import ObserverContext
from provision.agent.probe.expectations import parse_expectations
from provision.agent.probe.judging import JUDGES
from provision.agent.probe.judging.judgement import JudgeInput
from provision.agent.probe.observing.cgroups import cpu_quota, memory_limit, process_limit
from provision.agent.probe.observing.host import OBSERVERS
from provision.agent.probe.report_json import expand
from tests.agent.probe.bench import Environment, checks, in_namespace, without_rights

GIB = 1024**3


def put(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


@pytest.mark.parametrize(
    ("files", "memory", "cpus"),
    [
        ({}, None, None),
        ({"proc__self__cgroup": "0::/\n"}, None, None),
        (
            {
                "proc__self__cgroup": "0::/\n",
                "sys__fs__cgroup__memory.max": "max\n",
                "sys__fs__cgroup__cpu.max": "max 100000\n",
            },
            None,
            None,
        ),
        (
            {
                "proc__self__cgroup": "0::/\n",
                "sys__fs__cgroup__memory.max": f"{4 * GIB}\n",
                "sys__fs__cgroup__cpu.max": "150000 100000\n",
            },
            4 * GIB,
            1.5,
        ),
        # The tightest of all levels counts, not the innermost.
        (
            {
                "proc__self__cgroup": "0::/a/b\n",
                "sys__fs__cgroup__a__b__memory.max": f"{8 * GIB}",
                "sys__fs__cgroup__a__memory.max": f"{2 * GIB}",
            },
            2 * GIB,
            None,
        ),
        # Inside a container the group is named as the host sees it, and the limits stand at the
        # mount.
        (
            {"proc__self__cgroup": "0::/docker/abc\n", "sys__fs__cgroup__memory.max": f"{GIB}"},
            GIB,
            None,
        ),
        (
            {
                "proc__self__cgroup": "5:memory:/job\n4:cpu,cpuacct:/job\n0::/\n",
                "sys__fs__cgroup__memory__job__memory.limit_in_bytes": f"{3 * GIB}",
                "sys__fs__cgroup__memory__memory.limit_in_bytes": "9223372036854771712",
                "sys__fs__cgroup__cpu,cpuacct__job__cpu.cfs_quota_us": "200000",
                "sys__fs__cgroup__cpu,cpuacct__job__cpu.cfs_period_us": "100000",
            },
            3 * GIB,
            2.0,
        ),
        (
            {
                "proc__self__cgroup": "4:cpu:/\n",
                "sys__fs__cgroup__cpu__cpu.cfs_quota_us": "-1",
                "sys__fs__cgroup__cpu__cpu.cfs_period_us": "100000",
            },
            None,
            None,
        ),
    ],
)
def test_limits_of_control_groups(
    tmp_path: Path, files: dict[str, str], memory: int | None, cpus: float | None
) -> None:
    root = put(tmp_path, **files)
    assert memory_limit(root) == memory
    assert cpu_quota(root) == cpus


def test_a_host_is_read_from_its_files(
    tmp_path: Path, document: Callable[..., dict[str, Any]]
) -> None:
    root = put(
        tmp_path,
        proc__meminfo="MemTotal:       1048576 kB\nMemFree: 1 kB\n",
        proc__cpuinfo="processor: 0\nmodel name\t: Made up CPU\nflags\t\t: fpu avx2 fma\n\n"
        "processor: 1\n",
    )
    (root / "etc").mkdir()
    (root / "etc" / "os-release").write_text('ID=debian\nVERSION_ID="12.4"\n', encoding="utf-8")
    bench = ObserverContext(parse_expectations(document()), tmp_path, root=root)
    system, memory, cpu = (OBSERVERS[name](bench) for name in ("H01", "H05", "H04"))
    assert (system["os.id"], system["os.version"]) == ("debian", "12")
    assert memory == {"host.ram_bytes": GIB, "host.cgroup_ram_bytes": None}
    assert (cpu["host.cpu_model"], cpu["host.cpu_flags"], cpu["host.cpu_quota"]) == (
        "Made up CPU",
        "avx2 fma",
        None,
    )


def test_missing_shared_memory_is_none_at_all(
    tmp_path: Path, document: Callable[..., dict[str, Any]]
) -> None:
    bench = ObserverContext(parse_expectations(document()), tmp_path, root=tmp_path)
    assert OBSERVERS["H07"](bench)["host.shm_bytes"] in (0, None)


def test_declared_paths_are_tried_and_left_clean(
    tmp_path: Path, document: Callable[..., dict[str, Any]]
) -> None:
    (tmp_path / "good").mkdir()
    (tmp_path / "file").write_text("", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "good")
    mounts = (
        f"22 1 0:20 / / rw - ext4 /dev/a rw\n23 22 0:21 / {tmp_path.resolve()}/good rw - nfs4 "
        "server:/x rw\n"
    )
    root = put(tmp_path / "root", proc__self__mountinfo=mounts)
    paths = {
        "good": str(tmp_path / "good"),
        "file": str(tmp_path / "file"),
        "absent": str(tmp_path / "absent"),
        "link": str(tmp_path / "link"),
        "kernel": "/proc",
    }
    seen = OBSERVERS["W01"](
        ObserverContext(parse_expectations(document(paths=paths)), tmp_path, root=root)
    )
    assert [seen[f"path.{name}.state"] for name in ("good", "file", "absent", "link")] == [
        "writable",
        "not a folder",
        "absent",
        "writable",
    ]
    assert seen["path.kernel.state"].startswith("not writable")
    assert (seen["path.good.filesystem"], seen["path.file.filesystem"]) == ("nfs4", "ext4")
    assert (seen["path.good.link"], seen["path.link.link"]) == (False, True)
    assert list((tmp_path / "good").iterdir()) == []


def test_variables_are_named_and_only_telling_values_shown(
    tmp_path: Path, document: Callable[..., dict[str, Any]]
) -> None:
    environ = {
        "LD_PRELOAD": "/x.so",
        "CUDA_LAUNCH_BLOCKING": "1",
        "PYTHONOPTIMIZE": "1",
        "TOKEN": "secret-value",
        "EMPTY": "",
        "MODE": "a",
    }
    expected = parse_expectations(
        document(
            env={"MODE": "b", "PYTHONOPTIMIZE": "1", "ABSENT": "1"}, secrets=["TOKEN", "EMPTY"]
        )
    )
    bench = ObserverContext(expected, tmp_path, environ=environ)
    assert OBSERVERS["E01"](bench) == {"env.LD_PRELOAD": "/x.so", "env.CUDA_LAUNCH_BLOCKING": "set"}
    assert OBSERVERS["E02"](bench) == {
        "declared_env.MODE": "a",
        "declared_env.PYTHONOPTIMIZE": "1",
        "declared_env.ABSENT": None,
    }
    assert OBSERVERS["Y01"](bench) == {"secret.TOKEN": "set", "secret.EMPTY": "unset"}


@pytest.mark.parametrize(
    ("value", "state"),
    [
        ("  ", "blank"),
        ("long-enough\n", "with white space around it"),
        (" long-enough", "with white space around it"),
        ("xxx", "short"),
    ],
)
def test_a_secret_that_can_hardly_be_one_is_told_without_its_value(
    tmp_path: Path, document: Callable[..., dict[str, Any]], value: str, state: str
) -> None:
    bench = ObserverContext(
        parse_expectations(document(secrets=["TOKEN"])), tmp_path, environ={"TOKEN": value}
    )
    assert OBSERVERS["Y01"](bench) == {"secret.TOKEN": state}


def test_who_may_read_files_of_credentials_is_told(
    environment: Environment, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    for name, mode in (
        (".kaggle/kaggle.json", 0o644),
        (".cache/huggingface/token", 0o600),
        (".netrc", 0o640),
    ):
        put(home, **{name.replace("/", "__"): "a-secret-value"})
        (home / name).chmod(mode)
    variables = {"HOME": str(home), "GOOGLE_APPLICATION_CREDENTIALS": str(home / "gone.json")}
    code, report, said = environment.verify(tier="inventory", environ=variables)
    found = checks(report)["Y02"]
    assert (code, found["status"]) == (0, "warn"), said
    assert found["message"].startswith("Kaggle: the file can be read by others (mode 0644); netrc")
    assert (
        "Google Cloud: the file named by the variable cannot be read (No such file or directory)"
        in found["message"]
    )
    assert found["observed"]["Hugging Face"] == "only the owner"
    assert "a-secret-value" not in str(report)


def test_free_space_is_read_at_the_nearest_folder_that_exists(
    tmp_path: Path, document: Callable[..., dict[str, Any]]
) -> None:
    expected = parse_expectations(document(paths={"later": str(tmp_path / "not" / "yet")}))
    seen = OBSERVERS["H06"](ObserverContext(expected, tmp_path, environ={"HF_HOME": str(tmp_path)}))
    assert seen["disk.path.later.free_bytes"] > 0
    assert seen["disk.hf_cache.free_bytes"] > 0


def test_the_smallest_limit_of_processes_counts(tmp_path: Path) -> None:
    root = put(
        tmp_path,
        proc__self__cgroup="0::/a\n",
        **{"sys__fs__cgroup__a__pids.max": "max\n", "sys__fs__cgroup__pids.max": "100\n"},
    )
    assert process_limit(root) == 100
    assert process_limit(tmp_path / "nowhere") is None


def test_a_temporary_folder_that_is_not_there_is_told_although_python_takes_another(
    environment: Environment, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    code, report, _ = environment.verify(
        tier="inventory", environ={"TMPDIR": str(gone), "HF_HOME": str(tmp_path / "made/later")}
    )
    found = checks(report)["W03"]
    assert (code, found["status"], gone.exists()) == (0, "warn", False)
    assert found["message"].endswith("gone) is absent")
    assert "the temporary folder (TMPDIR=" in found["message"]
    assert "TMPDIR" in found["fix"]


def test_a_cache_that_cannot_be_written_is_told(environment: Environment, tmp_path: Path) -> None:
    environment.before = without_rights()
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    _, good, _ = environment.verify(tier="inventory", environ={"HF_HOME": str(tmp_path / "open")})
    _, report, _ = environment.verify(tier="inventory", environ={"HF_HOME": str(closed / "hf")})
    assert checks(good)["W03"]["status"] == "pass"
    assert "the Hugging Face cache" in checks(report)["W03"]["message"]
    assert "is not writable: Permission denied" in checks(report)["W03"]["message"]


def test_a_path_that_the_user_may_not_enter_fails_with_its_cause_and_hides_no_other(
    environment: Environment, tmp_path: Path
) -> None:
    environment.before = without_rights()
    for name in ("closed/data", "open", "home"):
        (tmp_path / name).mkdir(parents=True)
    paths = {
        "data": str(tmp_path / "closed/data"),
        "output": str(tmp_path / "open"),
        "later": str(tmp_path / "later"),
    }
    for name in ("closed", "home"):
        (tmp_path / name).chmod(0)
    code, report, said = environment.verify(
        tier="inventory",
        paths=paths,
        environ={"HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "closed/tmp")},
    )
    for name in ("closed", "home"):
        (tmp_path / name).chmod(0o700)
    found = checks(report)
    assert (code, found["W01"]["status"]) == (1, "fail"), said
    assert (
        f"data ({tmp_path}/closed/data) is not reachable: Permission denied"
        in found["W01"]["message"]
    )
    assert found["W01"]["observed"] == {
        "data": "not reachable: Permission denied",
        "output": "writable",
        "later": "absent",
    }
    assert "cannot enter" in found["W01"]["cause"]
    assert "chmod +x" in found["W01"]["fix"]
    assert found["W03"]["status"] == "warn"
    assert "is not reachable: Permission denied; the Hugging Face cache" in found["W03"]["message"]
    assert found["W03"]["fix"]
    assert {name for name, one in found.items() if one["status"] == "unknown"} <= {"H06"}


def test_an_environment_that_is_mounted_read_only_needs_no_room(
    environment: Environment, tmp_path: Path
) -> None:
    (tmp_path / "output").mkdir()
    prefix, room = (
        str(environment.root),
        {"requires__disk_bytes": 2**20, "paths": {"output": str(tmp_path / "output")}},
    )
    environment.before = in_namespace(
        f"mount --bind {prefix} {prefix}; mount -o remount,bind,ro {prefix}"
    )
    out = tmp_path / "output/report.json"
    environment.verify("--out", str(out), tier="inventory", **room)
    report = expand(json.loads(out.read_text()))
    assert checks(report)["H06"]["status"] == "pass", checks(report)["H06"]
    told = {one["key"]: one["value"] for one in report["readings"]}
    assert told["disk.environment.read_only"] is True
    assert "disk.environment.free_bytes" not in told


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("/driver", None),
        ("/driver:", None),
        ("/usr/lib64-nvidia", None),
        ("/usr/local/nvidia/lib:/usr/local/nvidia/lib64/:/cuda/lib64", "/cuda/lib64"),
        ("/driver:/cuda/lib64:/other", "/cuda/lib64:/other"),
        ("/cuda/lib64", "/cuda/lib64"),
        ("", None),
    ],
)
def test_the_folder_of_the_driver_on_the_path_of_libraries_is_let_be(
    tmp_path: Path, document: Callable[..., dict[str, Any]], value: str, told: str | None
) -> None:
    """Colab's own LD_LIBRARY_PATH is /usr/lib64-nvidia, and without it libcuda and libnvidia-ml are
    not found.
    """
    put(tmp_path, **{"driver__libcuda.so.1": "", "cuda__lib64__libcudart.so.13": ""})
    expected = parse_expectations(document())
    seen = OBSERVERS["E01"](
        ObserverContext(expected, tmp_path, root=tmp_path, environ={"LD_LIBRARY_PATH": value})
    )
    assert seen.get("env.LD_LIBRARY_PATH") == told
    judged = JUDGES["E01"](JudgeInput(expected, seen))
    assert judged.status.value == ("warn" if told else "pass")
    if told:
        assert judged.message.startswith(f"LD_LIBRARY_PATH={told}: libraries of the host")
        assert (judged.fix or "").startswith(f"remove {told} from LD_LIBRARY_PATH, or declare")


@pytest.mark.parametrize("value", ["0", "false", "No", "OFF", " 0 "])
def test_a_variable_that_is_switched_off_does_no_harm(
    tmp_path: Path, document: Callable[..., dict[str, Any]], value: str
) -> None:
    names = (
        "CUDA_LAUNCH_BLOCKING",
        "NCCL_P2P_DISABLE",
        "TORCHDYNAMO_DISABLE",
        "ACCELERATE_USE_CPU",
        "PYTHONOPTIMIZE",
    )
    bench = ObserverContext(
        parse_expectations(document()),
        tmp_path,
        environ=dict.fromkeys((*names, "PYTORCH_NO_CUDA_MEMORY_CACHING"), value),
    )
    assert OBSERVERS["E01"](bench) == {"env.PYTORCH_NO_CUDA_MEMORY_CACHING": "set"}
    assert set(
        OBSERVERS["E01"](
            ObserverContext(bench.expected, tmp_path, environ=dict.fromkeys(names, "1"))
        )
    ) == {f"env.{name}" for name in names}


@pytest.mark.parametrize(
    ("variables", "left"),
    [
        ({}, ["Hugging Face", "torch", "Triton"]),
        ({"HF_HOME": "/c"}, ["torch", "Triton"]),
        ({"XDG_CACHE_HOME": "/c"}, ["Triton"]),
        ({"HF_HOME": "/c", "TORCH_HOME": "/c", "TRITON_CACHE_DIR": "/c"}, []),
    ],
)
def test_what_the_fix_of_a_home_that_cannot_be_written_names_is_looked_at(
    tmp_path: Path,
    document: Callable[..., dict[str, Any]],
    variables: dict[str, str],
    left: list[str],
) -> None:
    expected = parse_expectations(document())
    seen = {
        **OBSERVERS["H10"](ObserverContext(expected, tmp_path, environ=variables)),
        "user.home_writable": False,
        "locale.encoding": "utf-8",
    }
    assert seen["user.caches_in_home"] == left
    judged = JUDGES["H10"](JudgeInput(expected, seen))
    assert judged.status.value == ("fail" if left else "pass")
    assert ("TRITON_CACHE_DIR" in (judged.fix or "")) is ("Triton" in left)
    assert ("HF_HOME" in (judged.fix or "")) is ("Hugging Face" in left)


def test_files_of_the_working_folder_that_hide_packages_are_a_warning_of_a_local_target(
    environment: Environment, tmp_path: Path
) -> None:
    environment.add("alpha").add("beta")
    (tmp_path / "project/beta").mkdir(parents=True)
    (tmp_path / "project/beta/__init__.py").write_text("")
    (tmp_path / "project/random.py").write_text("")
    (tmp_path / "project/mine.py").write_text("")
    environment.before = ("env", "-C", str(tmp_path / "project"))
    _, local, _ = environment.verify(tier="inventory")
    _, remote, _ = environment.verify(
        tier="inventory", target={"name": "there", "kind": "workbench"}
    )
    assert checks(local)["P03"]["status"] == "warn"
    assert checks(local)["P03"]["message"].endswith("instead of installed modules: beta; random")
    assert checks(remote)["P03"]["status"] == "pass"


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("mount", "status", "says"),
    [
        (
            "mount -t tmpfs -o size=64m tmpfs /dev/shm",
            "warn",
            "/dev/shm has only 64 MiB, but 1 GiB is recommended",
        ),
        (
            "mount -t tmpfs -o size=2g tmpfs /dev/shm; fallocate -l 1700m /dev/shm/left",
            "warn",
            "/dev/shm has 2 GiB, of which only 348 MiB is free",
        ),
        (
            "mount -t tmpfs -o size=2g,ro tmpfs /dev/shm",
            "warn",
            "/dev/shm is not writable: Read-only file system",
        ),
        ("mount -t tmpfs -o size=2g tmpfs /dev/shm", "pass", "/dev/shm has 2 GiB, 1 GiB required"),
    ],
)
def test_shared_memory_is_looked_at_as_it_is_mounted(
    environment: Environment, mount: str, status: str, says: str
) -> None:
    environment.before = in_namespace(mount)
    _, report, said = environment.verify(tier="inventory", training__dataloader_workers=2)
    assert report, said
    found = checks(report)["H07"]
    assert (found["status"], says in found["message"]) == (status, True), found


def test_a_disk_without_room_for_another_file_is_told(
    environment: Environment, tmp_path: Path
) -> None:
    (tmp_path / "full").mkdir()
    environment.before = in_namespace(f"mount -t tmpfs -o nr_inodes=1 tmpfs {tmp_path}/full")
    _, report, _ = environment.verify(tier="inventory", environ={"HF_HOME": str(tmp_path / "full")})
    found = checks(report)
    assert (found["H06"]["status"], found["H06"]["message"]) == (
        "warn",
        "no more files can be created in hf_cache",
    )
    assert "No space left on device" in found["W03"]["message"]


def test_limits_of_the_shell_are_told(environment: Environment) -> None:
    environment.before = ("sh", "-c", 'ulimit -S -v 8000000; ulimit -S -t 500; exec "$@"', "sh")
    _, report, _ = environment.verify(tier="inventory")
    found = checks(report)["H12"]
    assert found["status"] == "warn"
    assert "7.629 GiB of address space" in found["message"]
    assert "500 s of CPU" in found["message"]
