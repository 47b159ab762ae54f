"""Whatever is sent, and however many send it: refused with a word, never a crash; one creation,
never two.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.api_core.exceptions import GoogleAPICallError
from google.cloud import notebooks_v2 as nb
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from provision.sandbox.discovery import load_api_schema
from tests.sandbox_rig import BODY, NAME, ZONE, Clients, clients

FIELDS = sorted({field for fields in load_api_schema().messages.values() for field in fields})
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=5),
    st.sampled_from(["ACTIVE", "PD_SSD", "CMEK", "1", "NVIDIA_L4"]),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4)
    ),
    max_leaves=8,
)
SHAPED = st.fixed_dictionaries(
    {
        "gceSetup": st.fixed_dictionaries(
            {}, optional=dict.fromkeys(load_api_schema().messages["GceSetup"], VALUES)
        )
    }
)
BODIES = st.one_of(VALUES, SHAPED)
MASKS = st.lists(
    st.sampled_from(
        [
            *sorted(load_api_schema().mask_paths),
            "gce_setup",
            "state",
            "x",
            "gce_setup.metadata.a",
            "",
        ]
    ),
    max_size=3,
).map(",".join)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clients]:
    with clients(tmp_path_factory.mktemp("shared")) as made:
        made.made()
        made.done(made.rest.instances().stop(name=NAME, body={}).execute())
        yield made


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(body=BODIES)
def test_no_body_crashes_a_creation(shared: Clients, body: Any) -> None:
    status, answered, _ = shared.http("POST", f"/v2/{ZONE}/instances?instanceId=two", body)
    assert status < 500, answered
    if status == 200:
        shared.done(answered)
        shared.done(shared.rest.instances().delete(name=f"{ZONE}/instances/two").execute())


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(body=BODIES, mask=MASKS)
def test_no_body_crashes_an_update(shared: Clients, body: Any, mask: str) -> None:
    status, answered, _ = shared.http("PATCH", f"/v2/{NAME}?updateMask={mask}", body)
    assert status < 500, answered
    if status == 200:
        shared.done(answered)
    assert shared.grpc.get_instance(name=NAME).state == nb.State.STOPPED


@pytest.mark.parametrize(
    ("image", "kept"), [({"repository": "r"}, "containerImage"), ({}, "vmImage")]
)
def test_an_instance_has_one_kind_of_image(
    tmp_path: Path, image: dict[str, str], kept: str
) -> None:
    with clients(tmp_path) as made:
        made.made()
        made.done(made.rest.instances().stop(name=NAME, body={}).execute())
        mask = "gce_setup.container_image.repository,gce_setup.container_image.tag"
        status, answered, _ = made.http(
            "PATCH", f"/v2/{NAME}?updateMask={mask}", {"gceSetup": {"containerImage": image}}
        )
        assert status == 200, answered
        made.done(answered)
        setup = made.http("GET", f"/v2/{NAME}", None)[1]["gceSetup"]
        assert {"containerImage", "vmImage"} & setup.keys() == {kept}
        assert made.grpc.get_instance(name=NAME).state == nb.State.STOPPED


def test_many_make_one(tmp_path: Path) -> None:
    with clients(tmp_path) as sandbox:
        made: list[str] = []
        refused: list[int] = []
        start = threading.Barrier(16)

        def by_rest() -> None:
            start.wait()
            status, answered, _ = sandbox.http("POST", f"/v2/{ZONE}/instances?instanceId=one", BODY)
            made.append(answered["name"]) if status == 200 else refused.append(status)

        def by_grpc() -> None:
            start.wait()
            try:
                made.append(
                    sandbox.grpc.create_instance(
                        parent=ZONE, instance_id="one", instance=nb.Instance()
                    ).operation.name
                )
            except GoogleAPICallError as error:
                refused.append(int(error.code or 0))

        threads = [
            threading.Thread(target=target) for target in (by_rest, by_grpc) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=600)
        assert len(made) == 1
        assert refused == [409] * 15
        assert sandbox.store is not None
        assert len(sandbox.store.snapshot()["operations"]) == 1
