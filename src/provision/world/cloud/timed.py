"""An adapter for sessions of requests whose calls have a limit as a whole."""

from __future__ import annotations

from typing import Any

from provision.agent.core.timed_http import Call, Limits, Timed
from provision.world.cloud.extra import need


def timed_adapter(whole_s: float) -> Any:
    """Return an adapter whose `call` is the one that was begun last; raises WorldError when requests is missing."""
    base: Any = need("requests.adapters").HTTPAdapter

    class Adapter(base):  # type: ignore[misc]
        call = Call(Limits(whole_s))

        def begin(self) -> Call:
            self.call = Call(Limits(whole_s))
            return self.call

        def get_connection_with_tls_context(self, *args: Any, **more: Any) -> Any:
            pool = super().get_connection_with_tls_context(*args, **more)
            if not issubclass(pool.ConnectionCls, Timed):
                pool.ConnectionCls = _timed(pool.ConnectionCls, self)
            return pool

    return Adapter()


def _timed(kind: Any, adapter: Any) -> Any:
    """Return a class of connections of urllib3 that begin a call when they connect, and one with each request."""

    class Connection(Timed, kind):  # type: ignore[misc]
        def connect(self) -> None:
            self.begin(adapter.begin())
            super().connect()

        def request(self, *args: Any, **more: Any) -> None:
            self.begin(adapter.begin())
            super().request(*args, **more)

    return Connection
