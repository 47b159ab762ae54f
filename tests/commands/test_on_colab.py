"""What is asked of Colab's command line for a target, and that the ledger always knows what may be
running there.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from provision.adapters import RealSystem
from provision.commands.shared.executor import Executor
from provision.commands.shared.report_store import store_evidence
from provision.commands.shared.state_writer import StateWriter
from provision.commands.shared.target_plans import runs_in_browser
from provision.effects.colab import RunOnColab, StopColabSession
from provision.effects.system import Effect, ProgressCallback
from provision.errors import ExternalError, Refused
from provision.facts import load_facts as load_facts
from provision.kinds import REGISTRY
from provision.plan import Intent
from provision.state_store import LocalStore
from provision.targets import TargetContext
from provision.targets.base import ProbeEvidence, VerifyOptions
from provision.targets.colab.records import SessionRecord
from tests.targets.colab_places import place
from tests.targets.drivers import DRIVERS
from tests.views import builders

COLAB = DRIVERS["colab"]


class Colab(RealSystem):
    """This machine, with a Colab that answers at once; `fails` is what it answers instead,
    `journal` what was open in the ledger when it was asked.
    """

    def __init__(self, folder: Path, fails: BaseException | None = None) -> None:
        super().__init__({})
        self.folder, self.fails = folder, fails
        self.seen: list[RunOnColab | StopColabSession] = []
        self.journal: list[str] = []

    def perform(self, effect: Effect, tell: ProgressCallback) -> None:
        if not isinstance(effect, RunOnColab | StopColabSession):
            super().perform(effect, tell)
            return
        self.seen.append(effect)
        self.journal.append(
            (self.folder / "journal.json").read_text()
            if (self.folder / "journal.json").exists()
            else ""
        )
        if self.fails is not None:
            raise self.fails
        if isinstance(effect, RunOnColab):
            document = builders.sample("verified", [builders.check("H01", "host", "memory")])
            document["subject"]["nonce"] = effect.nonce
            effect.report.write_text(json.dumps(document))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".provision").mkdir()
    return tmp_path / ".provision"


def there(folder: Path, shape: str = "standard", **fields: Any) -> TargetContext:
    return place(
        "apart",
        folder=folder,
        colab={"via": "colab-cli", "runtime": "latest", "shape": shape},
        **fields,
    )


def ran(
    folder: Path, world: Colab, *, keep: bool = False, at: TargetContext | None = None
) -> tuple[ProbeEvidence, LocalStore]:
    executor, context = executor_of(folder, world), at or there(folder)
    evidence = COLAB.verify(context, executor, VerifyOptions(keep=keep))
    assert isinstance(evidence, ProbeEvidence)
    store_evidence(COLAB, context, evidence, executor)
    return evidence, LocalStore(folder, world)


def executor_of(folder: Path, world: Colab) -> Executor:
    store = LocalStore(folder, world)
    return Executor(StateWriter(store, store.load_ledger()), world, lambda _: None, REGISTRY)


def test_the_command_line_is_asked_for_targets_that_say_so(folder: Path) -> None:
    assert not runs_in_browser(there(folder))
    assert runs_in_browser(place("apart", folder=folder))


@pytest.mark.long(after=2)
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("gpu", "shape", "name", "high"),
    [
        ("none", "standard", "", False),
        ("none", "high", "", True),
        ("T4", "standard", "T4", False),
        ("T4", "high", "T4", True),
        ("L4", "standard", "L4", True),
        ("A100-40GB", "standard", "A100", False),
        ("A100-80GB", "standard", "A100", True),
        ("RTX-PRO-6000", "standard", "G4", False),
    ],
)
def test_cards_go_by_the_names_that_colab_has(
    folder: Path, gpu: str, shape: str, name: str, high: bool
) -> None:
    world = Colab(folder)
    ran(folder, world, at=there(folder, shape, gpu=gpu))
    (effect,) = world.seen
    assert isinstance(effect, RunOnColab)
    assert (effect.gpu, effect.high_memory) == (name, high)
    assert (name, high) in {(row.colab, row.shape == "high") for row in load_facts().shapes}


def test_every_run_has_a_nonce_of_its_own_in_its_cell(folder: Path) -> None:
    world = Colab(folder)
    ran(folder, world)
    ran(folder, world)
    one, other = (effect for effect in world.seen if isinstance(effect, RunOnColab))
    assert one.nonce != other.nonce
    assert one.nonce in one.cell.decode()
    assert one.session == f"provision-{one.nonce[:12]}"
    assert one.lock_digest == there(folder).lock.digest


def test_the_session_is_in_the_journal_before_it_is_asked_for(folder: Path) -> None:
    world = Colab(folder)
    _, store = ran(folder, world)
    details = json.loads(world.journal[0])["intents"][0]["details"]
    assert details.pop("asked"), "a machine may be billed from here on"
    assert details == {"session": world.seen[0].session}
    assert store.read_intents() == ()
    assert store.load().resource("spec/apart", SessionRecord.part) is None
    assert store.load().resource("spec/apart", "verification")["verdict"] == "verified"


def test_a_kept_session_is_recorded_and_given_back_before_the_next(folder: Path) -> None:
    world = Colab(folder)
    done, store = ran(folder, world, keep=True)
    kept = world.seen[0].session
    assert done.session == kept
    assert store.load().resource("spec/apart", SessionRecord.part)["session"] == kept
    _, store = ran(folder, world)
    assert [(type(effect).__name__, effect.session == kept) for effect in world.seen[1:]] == [
        ("StopColabSession", True),
        ("RunOnColab", False),
    ]
    assert store.load().resource("spec/apart", SessionRecord.part) is None


@pytest.mark.parametrize(("left", "open_"), [((), False), (None, True)])
def test_an_error_that_may_have_left_something_keeps_the_intent(
    folder: Path, left: Any, open_: bool
) -> None:
    error = ExternalError("no")
    error.still_running = left
    with pytest.raises(ExternalError):
        ran(folder, Colab(folder, error))
    assert bool(LocalStore(folder, RealSystem()).read_intents()) is open_


def test_an_interrupted_run_is_stopped_and_its_intent_closed(folder: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        ran(folder, Colab(folder, KeyboardInterrupt()))
    deaf, world = Colab(folder, ExternalError("deaf")), Colab(folder)
    store = LocalStore(folder, world)
    with pytest.raises(ExternalError):
        COLAB.release_interrupted(store.read_intents()[0], executor_of(folder, deaf))
    (intent,) = store.read_intents()
    assert intent is not None
    COLAB.release_interrupted(intent, executor_of(folder, world))
    assert world.seen == [StopColabSession(intent.details["session"], folder / "colab")]
    assert store.read_intents() == ()


def test_other_intents_are_left_alone(folder: Path) -> None:
    world = Colab(folder)
    store = LocalStore(folder, world)
    store.open_intent(Intent("spec/local", "environment", "+", (), world.now()))
    COLAB.release_interrupted(store.read_intents()[0], executor_of(folder, world))
    assert (world.seen, bool(store.read_intents())) == ([], True)


def test_an_open_intent_of_its_own_target_is_never_written_over(folder: Path) -> None:
    world, store = Colab(folder), LocalStore(folder, Colab(folder))
    store.open_intent(intent := Intent("spec/apart", "notebook", "+", (), world.now()))
    with pytest.raises(Refused, match="an earlier run of spec/apart was interrupted"):
        ran(folder, world)
    assert (world.seen, store.read_intents()) == ([], (intent,))


def test_an_open_intent_of_another_target_stays_open(folder: Path) -> None:
    world, store = Colab(folder), LocalStore(folder, Colab(folder))
    store.open_intent(
        intent := Intent(
            "spec/wb", "instance", "+", (), world.now(), ("projects/p/locations/z/instances/i",)
        )
    )
    ran(folder, world)
    assert store.read_intents() == (intent,)


def test_destroy_gives_back_what_is_recorded_and_what_was_begun(folder: Path) -> None:
    world = Colab(folder)
    ran(folder, world, keep=True)
    store = LocalStore(folder, world)
    store.open_intent(
        Intent(
            "spec/apart",
            SessionRecord.part,
            "+",
            (),
            world.now(),
            (),
            {"session": "provision-begun"},
        )
    )
    actions = DRIVERS["colab"].destroy("spec/apart", folder, store.load_ledger())
    stopped = [
        effect.session
        for action in actions
        for effect in action.effects
        if isinstance(effect, StopColabSession)
    ]
    assert stopped == ["provision-begun", world.seen[0].session]


def test_a_plan_says_how_the_cell_is_run(folder: Path) -> None:
    kind, at, store = DRIVERS["colab"], there(folder, gpu="T4"), LocalStore(folder, Colab(folder))
    (action,) = kind.plan(at, kind.observe(at, store.load_ledger(), RealSystem()))
    told = "\n".join(action.notes)
    assert "with the `colab` program, always with the newest runtime" in told
    assert "1.19" in told
    assert not any(isinstance(effect, RunOnColab) for effect in action.effects)
