"""An adapter for sessions of requests whose calls have a limit as a whole."""

from __future__ import annotations

from typing import Any

from provision.adapters.google.optional_import import import_optional
from provision.agent.core.timed_http import TimedCall, TimedConnection, TimeLimits


def timeout_adapter(whole_s: float) -> Any:
    """Return an adapter whose `call` is the latest call.

    Raises:
        ExternalError: requests is not installed.
    """
    base: Any = import_optional("requests.adapters").HTTPAdapter

    class Adapter(base):  # type: ignore[misc]
        call = TimedCall(TimeLimits(whole_s))

        def begin(self) -> TimedCall:
            self.call = TimedCall(TimeLimits(whole_s))
            return self.call

        def get_connection_with_tls_context(self, *args: Any, **more: Any) -> Any:
            pool = super().get_connection_with_tls_context(*args, **more)
            if not issubclass(pool.ConnectionCls, TimedConnection):
                pool.ConnectionCls = _timeout_connection(pool.ConnectionCls, self)
            return pool

    return Adapter()


def _timeout_connection(kind: Any, adapter: Any) -> Any:
    """Return a urllib3 connection class that begins a timed call on connect and on each request."""

    class Connection(TimedConnection, kind):  # type: ignore[misc]
        def connect(self) -> None:
            self.begin(adapter.begin())
            super().connect()

        def request(self, *args: Any, **more: Any) -> None:
            self.begin(adapter.begin())
            super().request(*args, **more)

    return Connection
