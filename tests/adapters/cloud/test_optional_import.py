"""The modules of Google's packages are imported whole or not at all."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

import pytest

from provision.adapters.google.optional_import import import_optional

INTERRUPTED = """
import signal
signal.raise_signal(signal.{name})
done = True
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """A module during whose import a signal arrives."""
    name = f"interrupted_by_{request.param}".lower()
    (tmp_path / f"{name}.py").write_text(INTERRUPTED.format(name=request.param))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, name, None)
    del sys.modules[name]
    return name


class Hangup(BaseException):
    """Raised by the handler of the test."""


@pytest.mark.parametrize("module", ["SIGINT"], indirect=True)
def test_an_interrupt_during_an_import_comes_after_it(module: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        import_optional(module)
    assert sys.modules[module].done
    assert import_optional(module).done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("module", ["SIGTERM", "SIGHUP"], indirect=True)
def test_so_does_a_signal_that_the_command_line_handles(module: str) -> None:
    def raise_hangup(*_: object) -> None:
        raise Hangup

    number = signal.Signals[module.removeprefix("interrupted_by_").upper()]
    before = signal.signal(number, raise_hangup)
    try:
        with pytest.raises(Hangup):
            import_optional(module)
        assert signal.getsignal(number) is raise_hangup
    finally:
        signal.signal(number, before)
    assert sys.modules[module].done


@pytest.mark.parametrize("module", ["SIGINT"], indirect=True)
def test_in_another_thread_an_import_leaves_the_handlers_alone(module: str) -> None:
    found: list[object] = []
    handler = signal.getsignal(signal.SIGINT)

    def ignore(*_: object) -> None:
        found.append("handled")

    signal.signal(signal.SIGINT, ignore)
    try:
        thread = threading.Thread(target=lambda: found.append(import_optional(module).done))
        thread.start()
        thread.join()
    finally:
        signal.signal(signal.SIGINT, handler)
    assert found == ["handled", True] or found == [True, "handled"]
