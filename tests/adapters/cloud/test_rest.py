"""REST calls on a bad day: what is asked again and how, what is not, and what a person reads in the
end.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.auth.credentials import AnonymousCredentials, Credentials
from google.auth.exceptions import RefreshError

from provision.adapters.google.errors import CloudError
from provision.adapters.google.notebooks import NotebooksApi
from provision.adapters.google.rest import RestClient
from tests.adapters.cloud.conftest import INSTANCE, REQUEST, Clock, instance
from tests.adapters.cloud.stub import Reply, answering

NAME = "projects/my-project/locations/us-central1-a/instances/i"
PARENT = "projects/my-project/locations/us-central1-a"
DONE = Reply(body={"name": f"{PARENT}/operations/o", "done": True})
UNAVAILABLE = Reply(
    503,
    {
        "error": {
            "code": 503,
            "message": "The service is currently unavailable.",
            "status": "UNAVAILABLE",
        }
    },
)
QUEUED = Reply(
    409, {"error": {"code": 409, "message": "unable to queue the operation", "status": "ABORTED"}}
)
UNAUTHENTICATED = Reply(
    401,
    {
        "error": {
            "code": 401,
            "message": "Request had invalid authentication credentials.",
            "status": "UNAUTHENTICATED",
        }
    },
)
CANARY = "ya29.canary-canary-canary-canary"


class Renewed(Credentials):  # type: ignore[misc]
    """Credentials whose first token is refused and whose second one is taken; `fails` at the
    second.
    """

    def __init__(self, *, fails: bool = False) -> None:
        super().__init__()
        self.fails = fails
        self.fetched = 0
        self.token = f"{CANARY}-0"
        self.expiry = datetime.now(UTC).replace(tzinfo=None) + timedelta(hours=1)

    def refresh(self, request: Any) -> None:
        if self.fails:
            raise RefreshError(
                "Reauthentication is needed. Please run `gcloud auth application-default "
                "login` to reauthenticate.",
                {"token": CANARY},
            )
        self.fetched += 1
        self.token = f"{CANARY}-{self.fetched}"


def over(address: str, clock: Clock, given: Any = None) -> NotebooksApi:
    return NotebooksApi(
        RestClient(given or AnonymousCredentials(), clock.pace(), loopback=True), address
    )


@pytest.mark.parametrize(
    "bad",
    [
        UNAVAILABLE,
        QUEUED,
        Reply(500),
        Reply(502, b"<html>Bad Gateway</html>"),
        Reply(504),
        Reply(drop=True),
        DONE._replace(cut=True),
    ],
)
@pytest.mark.parametrize(
    "call",
    [
        lambda over: over.create(PARENT, INSTANCE, instance(), REQUEST),
        lambda over: over.update(NAME, {"labels": {"a": "b"}}, "labels", REQUEST),
        lambda over: over.delete(NAME, REQUEST),
    ],
)
def test_a_change_is_asked_again_with_the_same_words(
    bad: Reply, call: Callable[[NotebooksApi], Any]
) -> None:
    clock = Clock()
    with answering(bad, bad, DONE) as (address, asked):
        assert call(over(address, clock))["done"]
    assert len(asked) == 3
    assert {one.query["requestId"] for one in asked} == {REQUEST}
    assert len({(one.method, one.path, one.body) for one in asked}) == 1
    assert clock.waits == [1.0, 2.0]


def test_how_long_a_service_asks_to_wait_is_kept() -> None:
    clock = Clock()
    with answering(
        Reply(429, headers={"Retry-After": "17"}), Reply(503, headers={"Retry-After": "0"}), DONE
    ) as (address, _):
        over(address, clock).get(NAME)
    assert clock.waits == [17.0, 2.0]


@pytest.mark.parametrize("status", [400, 403, 404, 412, 501])
def test_what_does_not_pass_is_asked_once(status: int) -> None:
    clock = Clock()
    with (
        answering(Reply(status, {"error": {"code": status, "message": "no"}})) as (address, asked),
        pytest.raises(CloudError),
    ):
        over(address, clock).create(PARENT, INSTANCE, instance(), REQUEST)
    assert (len(asked), clock.waits) == (1, [])


def test_patience_is_bounded() -> None:
    clock = Clock()
    with answering(UNAVAILABLE) as (address, asked), pytest.raises(CloudError) as raised:
        over(address, clock).get(NAME)
    assert clock.now <= 180
    assert f"gave up after {len(asked)} attempts" in raised.value.why
    assert len(asked) < 15


def test_a_wait_that_is_longer_than_patience_ends_it() -> None:
    clock = Clock()
    with (
        answering(Reply(429, headers={"Retry-After": "4000"})) as (address, asked),
        pytest.raises(CloudError) as raised,
    ):
        over(address, clock).get(NAME)
    assert (len(asked), clock.waits) == (1, [])
    assert "gave up after 1 attempt" in raised.value.why


def test_a_refused_token_is_fetched_anew_once() -> None:
    given = Renewed()
    with answering(UNAUTHENTICATED, DONE) as (address, asked):
        over(address, Clock(), given).get(NAME)
    assert [one.headers["authorization"] for one in asked] == [
        f"Bearer {CANARY}-0",
        f"Bearer {CANARY}-1",
    ]


def test_a_token_that_stays_refused_is_told_with_the_way_out() -> None:
    given = Renewed()
    with answering(UNAUTHENTICATED) as (address, asked), pytest.raises(CloudError) as raised:
        over(address, Clock(), given).get(NAME)
    assert (len(asked), given.fetched) == (2, 1)
    assert raised.value.hint == "gcloud auth application-default login"


def test_credentials_that_end_are_told_without_what_they_hold() -> None:
    with answering(UNAUTHENTICATED) as (address, _), pytest.raises(CloudError) as raised:
        over(address, Clock(), Renewed(fails=True)).get(NAME)
    told = raised.value.what + raised.value.why + raised.value.hint
    assert "your Google Cloud credentials are no longer valid" in told
    assert "Reauthentication is needed" in told
    assert "canary" not in told


def test_nobody_listens() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        clock = Clock()
        with pytest.raises(CloudError) as raised:
            over(f"http://127.0.0.1:{held.getsockname()[1]}", clock).get(NAME)
    assert raised.value.failure.kind == "unreachable"
    assert raised.value.what == "127.0.0.1 cannot be reached"
    assert "https_proxy" in raised.value.hint


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"\xff", b"[" * 5000])
def test_an_answer_that_is_no_json(body: bytes) -> None:
    with answering(Reply(200, body)) as (address, _), pytest.raises(CloudError) as raised:
        over(address, Clock()).get(NAME)
    assert raised.value.failure.kind == "nonsense"


def test_a_redirect_is_not_followed() -> None:
    with (
        answering(
            Reply(302, headers={"Location": "http://169.254.169.254/computeMetadata/v1/"})
        ) as (address, asked),
        pytest.raises(CloudError),
    ):
        over(address, Clock(), Renewed()).get(NAME)
    assert len(asked) == 1


def test_pages_are_read_to_the_end_and_zones_without_an_answer_are_named() -> None:
    first = Reply(
        body={
            "instances": [{"name": "a"}],
            "nextPageToken": "t",
            "unreachable": ["projects/p/locations/z"],
        }
    )
    with answering(first, Reply(body={"instances": [{"name": "b"}]})) as (address, asked):
        found, missed = over(address, Clock()).list("projects/my-project/locations/-")
    assert ([one["name"] for one in found], missed) == (["a", "b"], ("projects/p/locations/z",))
    assert asked[1].query["pageToken"] == "t"


def test_loopback_is_never_reached_through_a_proxy(tmp_path: Any) -> None:
    import json
    import os
    import subprocess
    import sys

    program = """
import json, sys
from google.auth.credentials import AnonymousCredentials
from provision.adapters.google.retry import RetryPolicy
from provision.adapters.google.rest import RestClient
client = RestClient(AnonymousCredentials(), RetryPolicy(), loopback=True)
print(json.dumps(client.request_json("GET", sys.argv[1] + "/v2/x")))
"""
    environment = {
        **os.environ,
        **dict.fromkeys(
            ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy"),
            "http://127.0.0.1:9",
        ),
    }
    environment.pop("no_proxy", None)
    environment.pop("NO_PROXY", None)
    with answering(DONE) as (address, _):
        done = subprocess.run(
            [sys.executable, "-c", program, address],
            capture_output=True,
            text=True,
            timeout=600,
            env=environment,
        )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["done"]
