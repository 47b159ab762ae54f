"""Fixtures shared by all tests: a bench with its own index, and one real Hugging Face environment
for the whole session.
"""

from __future__ import annotations

import gc
import os
import random
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from provision.adapters.diagnostic_log import log
from tests import fork_server
from tests.applied_project import apply_once
from tests.conda_rig import CondaChannel, conda_channel
from tests.pytorch_rig import PyTorch, lay_out
from tests.rig import Bench, make_index, make_wheel, small_spec
from tests.support import make_once

ROOT = Path(__file__).parent.parent
# collecting the tests makes a million objects that stay: looking for garbage among them takes half
# of that time
gc.disable()
# As the command line sets it: uv is started beside gRPC's threads, whose handlers of a fork may end
# it. gRPC reads it when it is imported.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")


def _settle() -> None:
    """Undo what programs inherit from whoever starts the tests: ignored and blocked signals, the
    umask, and variables that change what people read.
    """
    for number in signal.valid_signals() - {
        signal.SIGPIPE,
        signal.SIGXFSZ,
    }:  # these two Python ignores itself
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(
                number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            )
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.umask(0o022)
    for name in [name for name in os.environ if name.startswith(_CHANGES_TEXT)]:
        del os.environ[name]
    os.environ.update({"LANG": "C.UTF-8", "TERM": "dumb", "TZ": "UTC"})
    time.tzset()
    # pyenv's stand-ins are shell scripts that start ten programs each, and uv asks all of them.
    root = Path(sys.base_prefix).parent.parent
    own = str(Path(sys.base_prefix, "bin"))
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    os.environ["PATH"] = os.pathsep.join(
        own if Path(folder) == root / "shims" else folder
        for folder in folders
        if Path(folder) != root / "plugins/pyenv-virtualenv/shims"
    )


_CHANGES_TEXT = (
    "CLICOLOR",
    "COLORTERM",
    "COLUMNS",
    "FORCE_COLOR",
    "GITHUB_",
    "LANGUAGE",
    "LC_",
    "LINES",
    "MAKE",
    "MFLAGS",
    "NO_COLOR",
    "PAGER",
    "TTY_",
)
_settle()


_NOT_PURE = {
    "subprocess.Popen",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.exec",
    "socket.bind",
    "socket.connect",
}
_LONG_SHARE = 20
"""With a seed, one long test in this many runs."""
_running: list[pytest.Item] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options by which `make test-quick`, `make test`, `.ci/run` and `make test-long`
    differ.
    """
    group = parser.getgroup("provision")
    group.addoption(
        "--quick",
        action="store_true",
        help="skip each test that starts a program or opens a connection, where it does",
    )
    group.addoption(
        "--long",
        default="none",
        metavar="none|all|SEED",
        help="which tests marked long run; SEED draws a sample (default: none)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Watch for programs and connections, if --quick was given; draw the same examples in each run,
    but with --long=all.
    """
    settings.register_profile(
        "same examples",
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    if config.getoption("long") != "all":
        settings.load_profile("same examples")
    if config.getoption("quick"):
        sys.addaudithook(_skip_unless_pure)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the long tests that were not asked for, and with --quick the thorough ones."""
    if config.getoption("quick"):
        _leave_out(
            config, items, {item.nodeid for item in items if item.get_closest_marker("thorough")}
        )
    chosen = str(config.getoption("long"))
    if chosen == "all":
        return
    long = dict(_long_tests(items))
    drawn = sorted(name for name, minutes in long.items() if not minutes)
    kept = (
        []
        if chosen == "none"
        else random.Random(chosen).sample(drawn, -(-len(drawn) // _LONG_SHARE))
    )
    _leave_out(config, items, set(long) - set(kept))


def pytest_collection_finish() -> None:
    """Look for garbage again, but among what tests make only."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()


def _long_tests(items: list[pytest.Item]) -> Iterator[tuple[str, bool]]:
    """Yield the names of the tests marked long, and whether they take more than half a minute
    (`minutes=True`): a sample does not have them.

    With `after=N` the first N cases of each test are not long.
    """
    seen: Counter[str] = Counter()
    for item in items:
        if (mark := item.get_closest_marker("long")) is not None:
            test = item.nodeid.partition("[")[0]
            seen[test] += 1
            if seen[test] > mark.kwargs.get("after", 0):
                yield item.nodeid, mark.kwargs.get("minutes", False)


def _leave_out(config: pytest.Config, items: list[pytest.Item], names: set[str]) -> None:
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in names])
    items[:] = [item for item in items if item.nodeid not in names]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    """Note that a test runs: pytest itself may start programs. The log is that of one command, and
    would repeat the events of all tests before.
    """
    _running.append(item)
    try:
        return (yield)
    finally:
        _running.pop()
        log.reset()


def _skip_unless_pure(event: str, _: object) -> None:
    if _running and event in _NOT_PURE:
        pytest.skip(f"not pure: {event}")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """An empty project with an index of three small packages: alpha 1.0 and 2.0, beta (needs
    alpha<2), gamma (needs alpha>=2).
    """
    wheels = tmp_path / "wheels"
    made = (
        make_wheel(wheels, "alpha", "1.0"),
        make_wheel(wheels, "alpha", "2.0"),
        make_wheel(wheels, "beta", "1.0", requires=("alpha<2",)),
        make_wheel(wheels, "gamma", "1.0", requires=("alpha>=2",)),
    )
    folder = tmp_path / "project"
    (folder / "home").mkdir(parents=True)
    return Bench(folder, make_index(tmp_path / "index", made))


@pytest.fixture
def applied(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """The same with spec.yaml, which asks for alpha, locked, applied and verified."""
    return apply_once(tmp_path_factory, bench, "applied", small_spec("alpha"))


@pytest.fixture(scope="session")
def pytorch(tmp_path_factory: pytest.TempPathFactory) -> PyTorch:
    """PyTorch's indexes as small wheels, made once; read only."""
    return PyTorch(make_once(tmp_path_factory, "pytorch", lay_out))


@pytest.fixture(scope="session")
def conda() -> CondaChannel:
    """A conda channel with a real Python, made once for all sessions; read only. Below pytest's own
    folder, which git ignores.
    """
    pytest.importorskip("rattler_build", reason="the channel is made with py-rattler-build")
    if "deb_system" in sysconfig.get_scheme_names():
        pytest.skip("a channel of Debian's own Python: it does not look where conda puts packages")
    return conda_channel(ROOT / ".pytest_cache/conda")


@pytest.fixture(scope="session")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of specs/quickstart.yaml, applied for real with the machine's own package sources; the
    folder that holds it. Read only.
    """

    def make(folder: Path) -> None:
        for name in ("quickstart.yaml", "quickstart.lock"):
            shutil.copy(ROOT / "specs" / name, folder / name)
        words = ["apply", "quickstart.yaml", "--yes"]
        done = fork_server.run(
            [*fork_server.ARGV, *words], cwd=folder, capture_output=True, text=True, timeout=1200
        )
        assert done.returncode == 0, done.stdout + done.stderr
        (folder / "first-run.txt").write_text(done.stdout + done.stderr)

    return make_once(tmp_path_factory, "quickstart", make)


@pytest.fixture(scope="session")
def hf_python(request: pytest.FixtureRequest) -> str:
    """The interpreter of an environment with torch, transformers, accelerate and datasets:
    PROVISION_TEST_HF_PYTHON, or the quickstart's.
    """
    given = os.environ.get("PROVISION_TEST_HF_PYTHON")
    return given or str(
        request.getfixturevalue("quickstart") / ".provision/envs/quickstart.local/bin/python"
    )


@pytest.fixture(scope="session")
def pythons() -> list[str]:
    """Interpreters that the probe and the installer promise to run on; says which ones are not
    here.
    """
    listed = [
        path for path in os.environ.get("PROVISION_TEST_PYTHONS", "").split(os.pathsep) if path
    ]
    found = listed or [
        path for minor in range(10, 15) if (path := shutil.which(f"python3.{minor}"))
    ]
    working = [
        path
        for path in found
        if subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0
    ]
    for path in sorted(set(found) - set(working)):
        print(f"skipped: {path} does not run")
    if not working:
        pytest.skip("no further Python was found; name them in PROVISION_TEST_PYTHONS")
    return working
