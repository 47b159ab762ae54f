"""Dispatches effects on services to the adapter of their service."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING

from provision.adapters.files import user_cache_folder
from provision.adapters.user_cache import IMAGES

if TYPE_CHECKING:
    from provision.adapters.google.client import GoogleClient
    from provision.adapters.google.report_polling import PollingClock
    from provision.adapters.google.retry import RetryPolicy
    from provision.effects.service import ServiceEffect
    from provision.effects.system import ProgressCallback


class Services:
    """The services outside this machine; each is connected to on first use.

    `endpoints` replaces Google's addresses by service (the emulator's), `clock` is for waiting for
    the report of a device, `retry_policy` for waiting for Google's services. With `shared`,
    several threads use them.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        endpoints: Mapping[str, str] | None,
        clock: PollingClock | None,
        retry_policy: RetryPolicy | None,
        *,
        shared: bool = False,
    ) -> None:
        self.environment = environment
        self._endpoints = endpoints
        self._clock = clock
        self._retry_policy = retry_policy
        self._shared = shared
        self._connecting = Lock()

    @property
    def google(self) -> GoogleClient:
        """The client of Google Cloud."""
        with self._connecting:
            return self._google

    @cached_property
    def _google(self) -> GoogleClient:
        from provision.adapters.google.client import GoogleClient
        from provision.adapters.google.endpoints import Endpoints

        endpoints = Endpoints.from_addresses(self._endpoints) if self._endpoints else None
        images = user_cache_folder(self.environment) / IMAGES
        if not self._shared:
            return GoogleClient(endpoints, self._retry_policy, images=images)
        from provision.adapters.google.shared_client import SharedGoogleClient

        return SharedGoogleClient(endpoints, self._retry_policy, images=images)

    @property
    def polling_clock(self) -> PollingClock:
        """The clock for waiting for the report of a device."""
        from provision.adapters.google.report_polling import LOOPBACK_CLOCK, PollingClock

        if self._clock is not None:
            return self._clock
        return LOOPBACK_CLOCK if self._endpoints else PollingClock()

    def perform(self, effect: ServiceEffect, progress: ProgressCallback) -> None:
        """Perform an effect by the adapter of its service, which is imported on first use."""
        module, _, function = effect.service.partition(":")
        getattr(import_module(module), function)(effect, self, progress)


def perform_on_google(
    effect: ServiceEffect, services: Services, progress: ProgressCallback
) -> None:
    """Perform an effect on Google Cloud."""
    from provision.adapters.google.effects import perform

    perform(effect, services.google, services.polling_clock, progress)


def perform_on_vertex(
    effect: ServiceEffect, services: Services, progress: ProgressCallback
) -> None:
    """Perform an effect on Vertex AI."""
    from provision.adapters.google.vertex_effects import perform

    perform(effect, services.google, services.polling_clock, progress)


def perform_on_colab(effect: ServiceEffect, services: Services, progress: ProgressCallback) -> None:
    """Perform an effect on Colab."""
    from provision.adapters.colab.runs import perform

    perform(effect, services.environment, progress)
