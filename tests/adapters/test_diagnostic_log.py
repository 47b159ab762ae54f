"""The diagnostic log: its secrets, its lines, its files, and the time at which handlers come."""

from __future__ import annotations

import logging
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from provision.adapters.diagnostic_log import configure_logging, log, open_state_log
from provision.adapters.process import capture
from provision.errors import UsageError

ENVIRONMENT = {"MY_TOKEN": "canary-of-a-variable", "PASSWORD_FILE": sys.executable, "HOME": "/x"}
PRIVATE_KEY = "-----BEGIN RSA PRIVATE KEY-----\ncanary\n-----END RSA PRIVATE KEY-----"
WEB_TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.canarycanary"


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    yield
    log.reset()


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    "secret",
    [
        "hf_canarycanarycanary",
        "AIzacanarycanarycanarycanary",
        "ya29.canarycanarycanary",
        "ghp_canarycanarycanarycanary",
        "sk-canarycanarycanarycanary",
        "Authorization: Bearer canarycanarycanary",
        "https://me:canary@host/simple",
        "https://canary@host/simple",
        "https://host/x?token=canary&y=1",
        "https://host/x?X-Goog-Signature=canary",
        PRIVATE_KEY,
        WEB_TOKEN,
        "api_key=" + "c0ffee" * 6 + "canary"[:0] + "beef",
        ENVIRONMENT["MY_TOKEN"],
        repr(ENVIRONMENT["MY_TOKEN"]),
    ],
)
@pytest.mark.parametrize("where", ["message", "argument", "bytes"])
def test_no_shape_of_a_secret_reaches_a_handler(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], secret: str, where: str
) -> None:
    path = tmp_path / "x.log"
    configure_logging([], ENVIRONMENT, verbosity=2, log_file=path)
    open_state_log(tmp_path, ENVIRONMENT)
    match where:
        case "message":
            log.info("before " + secret.replace("%", "%%") + " after")
        case "argument":
            log.info("before %s after", secret)
        case "bytes":
            log.info("before %r after", secret.encode())
    state_log = tmp_path / "logs/provision.log"
    for text in (capsys.readouterr().err, path.read_text(), state_log.read_text()):
        assert "before" in text
        assert "canary" not in text
        assert "c0ffee" not in text


def test_a_secret_in_the_command_line_is_hidden(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    arguments = ["run", "spec.yaml", "--", "train.py", "--password", "no-shape-at-all"]
    configure_logging(arguments, ENVIRONMENT, log_file=path)
    assert "train.py ..." in path.read_text()
    assert "no-shape-at-all" not in path.read_text()


def test_a_path_in_a_variable_called_like_a_secret_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    configure_logging([], ENVIRONMENT, log_file=path)
    log.info("run %s", sys.executable)
    assert f"run {sys.executable}" in path.read_text()


@pytest.mark.parametrize(
    "hostile", ["a\nERROR forged", "a\r\x1b[2Jb", "a\u202eb", "%s %d", "\udcff"]
)
def test_a_hostile_value_cannot_break_a_line(tmp_path: Path, hostile: str) -> None:
    path = tmp_path / "x.log"
    configure_logging([], {}, log_file=path)
    before = len(lines(path))
    log.info("value %s end", hostile)
    log.info(hostile, "wrong", "arguments", 3)
    assert len(lines(path)) == before + 2
    assert all(line.isprintable() for line in lines(path))


def test_a_long_value_is_cut_after_its_secrets_are_hidden(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    configure_logging([], ENVIRONMENT, log_file=path)
    log.info("%s", "x" * 3990 + ENVIRONMENT["MY_TOKEN"])
    assert max(map(len, lines(path))) < 4100
    assert "canary" not in path.read_text()


def test_verbosity(capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for verbosity in range(3):
        configure_logging([], {}, verbosity=verbosity)
        capture(["true"], {"PATH": "/usr/bin:/bin"})
        shown.append(capsys.readouterr().err)
    assert shown[0] == ""
    assert "INFO run true" in shown[1]
    assert "exit code" not in shown[1]
    assert "DEBUG exit code 0 after" in shown[2]


def test_a_file_is_private_and_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    for _ in range(2):
        configure_logging(["lock"], {}, log_file=path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sum("command line: provision lock" in line for line in lines(path)) == 2


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot write the log file"):
        configure_logging([], {}, log_file=tmp_path / "nowhere/x.log")


def test_the_file_of_the_state_begins_with_the_command_line_and_is_private(tmp_path: Path) -> None:
    configure_logging(["apply", "spec.yaml"], {})
    log.info("run %s", "uv")
    open_state_log(tmp_path, {})
    path = tmp_path / "logs/provision.log"
    assert [line.split("INFO ")[1].split(",")[0] for line in lines(path)] == [
        "provision " + logs_version(),
        "command line: provision apply spec.yaml",
        "run uv",
    ]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def logs_version() -> str:
    from provision import __version__

    return __version__


def test_the_file_of_the_state_rotates(tmp_path: Path) -> None:
    open_state_log(tmp_path, {}, max_bytes=1000)
    for number in range(100):
        log.info("line %d", number)
    found = sorted((tmp_path / "logs").iterdir())
    assert [path.name for path in found] == [
        "provision.log",
        "provision.log.1",
        "provision.log.2",
    ]
    assert all(path.stat().st_size <= 1000 for path in found)
    assert {stat.S_IMODE(path.stat().st_mode) for path in found} == {0o600}


@pytest.mark.parametrize("linked", ["logs", "logs/provision.log"])
def test_a_link_in_place_of_the_log_is_not_followed(tmp_path: Path, linked: str) -> None:
    target = tmp_path / "target"
    if linked == "logs":
        target.mkdir()
    else:
        target.write_text("mine")
    path = tmp_path / "state" / linked
    path.parent.mkdir(parents=True)
    path.symlink_to(target)
    open_state_log(tmp_path / "state", {})
    log.info("line")
    assert list(target.iterdir()) == [] if target.is_dir() else target.read_text() == "mine"


def test_a_folder_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file")
    open_state_log(tmp_path, {})
    log.info("line")


def test_a_full_disk_stops_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    configure_logging([], {}, log_file=full)
    log.info("line")
    assert capsys.readouterr().err == ""


def test_every_handler_has_the_filter(tmp_path: Path) -> None:
    configure_logging([], {}, verbosity=1, log_file=tmp_path / "x.log")
    open_state_log(tmp_path, {})
    assert len(log._handlers) == 3
    for handler in log._handlers:
        assert isinstance(handler, logging.Handler)
        assert len(handler.filters) == 1
