"""No instance is ever unknown to state, journal and orphans at once: moves that are cut short,
deletions that are refused, instances shown late.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from provision.adapters import RealSystem
from provision.commands.orphans import list_orphans
from provision.commands.shared.executor import Executor, recover_interrupted
from provision.commands.shared.state_writer import StateWriter
from provision.effects.google import CloudReader, CreateInstance, DeleteInstance
from provision.effects.system import Effect, ProgressCallback, System
from provision.errors import ExternalError
from provision.kinds import REGISTRY
from provision.plan import Intent, Operation
from provision.state import StateRecord
from provision.state_store import LocalStore
from provision.targets.workbench.records import is_former_part
from tests.commands.test_workbench import CutShort, Device, Place, at
from tests.commands.test_workbench_owning import asked_long_ago, beside, cut, edit
from tests.rig import Bench

pytest.importorskip("google.cloud.notebooks_v2")
ZONES, ELSEWHERE = "[us-central1-a, us-central1-b]", "[us-east1-c]"


class Refusing(RealSystem):
    """A World in which nothing may be deleted."""

    def perform(self, effect: Effect, tell: ProgressCallback) -> None:
        if isinstance(effect, DeleteInstance):
            raise ExternalError("deleting is refused", why="the role was taken away")
        super().perform(effect, tell)


class Late(RealSystem):
    """A World in which instances are not shown, alone or in lists, but for those in `shown`, and
    operations cannot be listed.
    """

    shown: frozenset[str] = frozenset()

    def cloud(self) -> CloudReader:
        real, shown = super().cloud(), self.shown

        class Reader:
            def __getattr__(self, name: str) -> Any:
                return getattr(real, name)

            def instance(self, name: str) -> Mapping[str, Any] | None:
                return real.instance(name) if name in shown else None

            def instances(self, project: str) -> tuple[Mapping[str, Any], ...]:
                return tuple(one for one in real.instances(project) if one["name"] in shown)

            def last_operation(self, _: str) -> Mapping[str, Any] | None:
                return None

        return Reader()  # type: ignore[return-value]


def refusing(place: Place) -> RealSystem:
    return Refusing(place.bench.environment(), endpoints=place.endpoints)


def late(place: Place) -> RealSystem:
    return Late(place.bench.environment(), endpoints=place.endpoints)


def known(place: Place) -> set[str]:
    """Return the zones of all instances that state and journal name."""
    ledger = place.ledger()
    recorded = {
        record["zone"]
        for key, record in ledger.state.resources.items()
        if record.get("instance") and record.get("zone")
    }
    return recorded | {name.split("/")[3] for intent in ledger.intents for name in intent.names}


@pytest.mark.long(after=1)
@pytest.mark.parametrize("recovered_by", ["apply", "another target", "destroy"])
def test_a_move_whose_old_instance_stays_is_known_until_that_is_gone(
    bench: Bench, recovered_by: str
) -> None:
    with at(bench, Device()) as place:
        place.apply()
        edit(place, (ZONES, ELSEWHERE))
        with pytest.raises(ExternalError, match="refused"):
            place.apply(refusing(place))
        assert set(place.instances()) == {"us-central1-a", "us-east1-c"} <= known(place)
        if recovered_by == "another target":
            settle_as_another_target(place)
            assert set(place.instances()) <= known(place)
        if recovered_by == "destroy":
            place.destroy()
            assert (place.instances(), place.ledger().state.resources) == ({}, {})
            return
        assert place.apply().exit_code == 0
        assert list(place.instances()) == ["us-east1-c"]
        assert not any(is_former_part(part) for part in place.ledger().state.parts("spec/wb"))
        assert place.verbs() == [Operation.KEEP]


def settle_as_another_target(place: Place) -> None:
    """Recover from open intents as an apply of another target does."""
    recover_all(place, place.world)


def recover_all(place: Place, world: System) -> None:
    """Recover from open intents, with no address planned."""
    store = LocalStore(place.ledger_folder(), world)
    with store.exclusive(0, place.lines.append):
        writer = StateWriter(store, store.load_ledger())
        executor = Executor(writer, world, place.lines.append, REGISTRY)
        recover_interrupted(executor, ())


def test_a_move_that_was_taken_back_deletes_the_instance_that_is_no_longer_wanted(
    bench: Bench,
) -> None:
    with at(bench, Device()) as place:
        place.apply()
        edit(place, (ZONES, ELSEWHERE))
        with pytest.raises(ExternalError, match="refused"):
            place.apply(refusing(place))
        settle_as_another_target(place)
        edit(place, (ELSEWHERE, ZONES))
        for _ in range(2):
            place.apply()
        assert len(place.instances()) == 1
        assert set(place.instances()) == known(place)


def test_an_instance_that_is_not_shown_yet_stays_known(bench: Bench) -> None:
    with at(bench, Device()) as place:
        with pytest.raises(CutShort):
            place.apply(cut(place, CreateInstance, after=True))
        (zone,) = place.instances()
        recover_all(place, late(place))
        assert zone in known(place)
        assert any("not listed yet" in line for line in place.lines)
        from provision.commands.destroy import destroy

        with pytest.raises(ExternalError, match="is not listed yet"):
            destroy(place.path, (), late(place), lambda _: None, place.lines.append, sandbox=True)
        assert zone in known(place)
        assert list_orphans([place.loaded()], place.world).orphans == ()
        place.destroy()  # shown now
        assert (place.instances(), known(place)) == ({}, set())


def test_what_was_asked_for_long_ago_and_is_not_shown_was_never_made(bench: Bench) -> None:
    with at(bench, Device()) as place:
        with pytest.raises(CutShort):
            place.apply(cut(place, CreateInstance, after=False))
        asked_long_ago(place)
        settle_as_another_target(place)
        assert place.ledger().intents == ()


def test_what_was_not_asked_for_yet_is_forgotten_at_once(bench: Bench) -> None:
    from provision.effects.google import UploadObjects

    with at(bench, Device()) as place:
        with pytest.raises(CutShort):
            place.apply(cut(place, UploadObjects, after=True))
        place.destroy()
        assert (place.ledger().intents, place.store.objects("my-bucket")) == ((), ())


def test_a_journal_of_an_older_version_is_read_as_one_open_intent(bench: Bench) -> None:
    store = LocalStore(bench.own, RealSystem(bench.environment()))
    bench.own.mkdir()
    old = {
        "address": "spec/wb",
        "part": "instance",
        "verb": "+",
        "paths": [],
        "began": "2026-11-20T00:00:00Z",
    }
    (bench.own / "journal.json").write_text(
        json.dumps(
            {**old, "names": ["projects/p/locations/z/instances/i"], "details": {"nonce": "n"}}
        )
    )
    (intent,) = store.read_intents()
    assert intent.key == ("spec/wb", "instance", ("projects/p/locations/z/instances/i",), "n")
    assert intent.details["asked"] == "2026-11-20T00:00:00Z"
    other = Intent(
        "spec/other", "environment", "+", ("envs/x",), "2026-11-21T00:00:00Z", (), StateRecord()
    )
    store.open_intent(other)
    store.open_intent(intent)
    assert store.read_intents() == (other, intent)
    store.close_intent(intent)
    assert store.read_intents() == (other,)
    store.close_intent(other)
    assert (bench.own / "journal.json").read_text() == ""
    (bench.own / "journal.json").write_text('{"schema": "provision.journal/9"}')
    with pytest.raises(Exception, match="a different version"):
        store.read_intents()


def test_a_project_that_only_an_earlier_run_named_is_asked_for_orphans(bench: Bench) -> None:
    with at(bench, Device()) as place:
        with pytest.raises(CutShort):
            place.apply(cut(place, CreateInstance, after=True))
        asked_long_ago(place)
        edit(place, ("project: my-project", "project: other-project"))
        recover_all(place, late(place))
        assert (known(place), len(place.instances())) == (set(), 1)
        (orphan,) = list_orphans([place.loaded()], place.world).orphans
        assert orphan.name.startswith("projects/my-project/")


def test_a_project_that_does_not_answer_hides_no_orphan_of_another(bench: Bench) -> None:
    class Unreachable(RealSystem):
        def cloud(self) -> CloudReader:
            real = super().cloud()

            class Reader:
                def __getattr__(self, name: str) -> Any:
                    return getattr(real, name)

                def instances(self, project: str) -> tuple[Mapping[str, Any], ...]:
                    if project == "other-project":
                        raise ExternalError("no access to other-project")
                    return real.instances(project)

            return Reader()  # type: ignore[return-value]

    with at(bench, Device()) as place:
        place.apply()
        other = beside(place, "elsewhere")  # whose state does not have the instance
        text = other.path.read_text()
        other.path.write_text(
            text
            + text[text.index("  wb:") :]
            .replace("  wb:", "  another:")
            .replace("my-project", "other-project")
        )
        listing = list_orphans(
            [other.loaded()], Unreachable(place.bench.environment(), endpoints=place.endpoints)
        )
        assert [orphan.name.split("/")[1] for orphan in listing.orphans] == ["my-project"]
        assert (list(listing.failed), listing.exit_code) == (["other-project"], 1)


def test_a_recorded_instance_that_is_not_found_once_is_deleted_all_the_same(bench: Bench) -> None:
    with at(bench, Device()) as place:
        place.apply()
    with at(bench, Device(), "hidden:1000") as place:  # by GET; lists show it
        assert len(place.instances()) == 1
        place.destroy()
        assert place.instances() == {}
