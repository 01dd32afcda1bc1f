"""From runs to a verdict, on runs that are made up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from dcplint.harness.job import GQA_CONTROL, Job, failed, make_run
from dcplint.harness.model import Confirmation, Execution, Run, Signal, Verdict
from dcplint.harness.pool import Pool
from dcplint.harness.predict import PREDICTIONS, Part, Prediction
from dcplint.harness.verify import ALONE, DRAFT, Verifier

IN_FP8_TOO = ["fp8-cache-n1", "fp8-cache-n2"]
PROBES = ["ragged-i16", "short-i1", DRAFT, ALONE]
CLAIM = Prediction(("ragged",), frozenset({Signal.READ_UNOWNED, Signal.ERROR}))


class MadeUp:
    """A pool whose backend's runs are given by probe; the control is right."""

    jobs = 1

    def __init__(self, engine: Path | None = None, **faults: Signal) -> None:
        self.engine = engine
        self.environment = {"torch": "", "triton": "", "device": "cpu"}
        self.faults = {name.replace("_", "-"): signal for name, signal in faults.items()}
        self.reached: bool | None = None
        self.substituted: tuple[str, ...] = ()
        self.lacking, self.card = "", ""
        self.dtypes: list[str] = []
        self.float32_fails = False
        self.fp8 = False
        self.unrun: tuple[str, ...] = ()

    def describe(self, target: str, world_size: int) -> dict[str, Any]:
        claims = {"is_mla": False, "card": self.card, "dtypes": self.dtypes, "fp8": self.fp8}
        probes = [*PROBES, *(IN_FP8_TOO if self.fp8 else ())]
        return {"lacking": self.lacking, "claims": claims, "probes": probes, "core": PROBES}

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[int, Run]]:
        for index, job in enumerate(jobs):
            if job.target == GQA_CONTROL:
                assert not job.site
                yield index, make_run(job, (), Execution.INTERPRETED, 0.0)
                continue
            if job.probe in self.unrun:
                yield index, make_run(job, (), Execution.NOT_RUN, 0.0, ("needs a compiled op",))
                continue
            fault = self.faults.get(job.probe)
            if self.float32_fails and job.dtype == "float32":
                fault = Signal.ERROR
            found = () if fault is None else (failed(fault, 0, "made up"),)
            run = make_run(job, found, Execution.INTERPRETED, 0.0)
            yield index, replace(run, reached=self.reached, substituted=self.substituted)


def _verdict(pool: MadeUp, prediction: Prediction = CLAIM) -> Confirmation:
    verifier = Verifier(cast(Pool, pool), Job("", "", 2))
    return verifier.verify("module:Backend", prediction, site=(Path("module.py"), 3))


@pytest.mark.parametrize("reached", [True, None])
def test_a_predicted_fault_confirms(reached: bool | None) -> None:
    pool = MadeUp(ragged_i16=Signal.READ_UNOWNED)
    pool.reached = reached
    assert _verdict(pool).verdict is Verdict.CONFIRMED


def test_a_fault_elsewhere_does_not() -> None:
    pool = MadeUp(ragged_i16=Signal.READ_UNOWNED)
    pool.reached = False
    said = _verdict(pool)
    assert said.verdict is Verdict.INCONCLUSIVE
    assert "the statement in question is never executed" in said.reason


@pytest.mark.parametrize(
    ("reached", "verdict"),
    [(True, Verdict.REFUTED), (None, Verdict.REFUTED), (False, Verdict.INCONCLUSIVE)],
)
def test_only_what_was_executed_is_refuted(reached: bool | None, verdict: Verdict) -> None:
    pool = MadeUp()
    pool.reached = reached
    assert _verdict(pool).verdict is verdict


@pytest.mark.parametrize(
    ("part", "right", "wrong"),
    [
        (Part.AROUND, Verdict.REFUTED, Verdict.CONFIRMED),
        (Part.GIVEN, Verdict.INCONCLUSIVE, Verdict.CONFIRMED),
        (Part.KERNEL, Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE),
    ],
)
def test_what_a_reference_in_the_kernels_place_settles(
    part: Part, right: Verdict, wrong: Verdict
) -> None:
    prediction = replace(CLAIM, part=part)
    for pool, verdict in (
        (MadeUp(), right),
        (MadeUp(ragged_i16=Signal.READ_UNOWNED), wrong),
    ):
        pool.substituted = ("kernel_of_theirs",)
        said = _verdict(pool, prediction)
        assert said.verdict is verdict, said.reason
        if verdict is not Verdict.CONFIRMED:
            assert "a reference stood in for kernel_of_theirs" in said.reason


def test_what_only_an_unsharded_layer_raises_is_another_rules() -> None:
    said = _verdict(MadeUp(draft=Signal.ERROR))
    assert said.verdict is Verdict.INCONCLUSIVE
    others = len(said.runs) - 1
    told = f"right in {others} probes, but not where a layer in the group is unsharded (error)"
    assert said.reason.startswith(told)
    worse = _verdict(MadeUp(draft=Signal.ERROR, single_rank=Signal.REFUSED))
    assert worse.reason.startswith("it refuses to run under DCP")
    assert _verdict(MadeUp(draft=Signal.READ_UNOWNED)).verdict is Verdict.CONFIRMED
    own = replace(CLAIM, probes=(DRAFT,))
    assert _verdict(MadeUp(draft=Signal.ERROR), own).verdict is Verdict.CONFIRMED


def test_an_error_that_stand_ins_may_cause_confirms_nothing() -> None:
    both = {"ragged_i16": Signal.ERROR, "single_rank": Signal.ERROR}
    assert _verdict(MadeUp(Path("engine"), **both)).verdict is Verdict.INCONCLUSIVE
    assert _verdict(MadeUp(Path("engine"), ragged_i16=Signal.ERROR)).verdict is Verdict.CONFIRMED
    assert _verdict(MadeUp(**both)).verdict is Verdict.CONFIRMED


@pytest.mark.parametrize(
    ("message", "probe"),
    [
        ("passes `cp_rank` to `fa`, which masks as if the interleave were 1", "multi-query"),
        ("runs `fa` with causal=True under DCP, where `forward` passes meta.causal", "multi-query"),
        ("runs `fa` without `s_aux`, which `forward` passes", "sinks"),
        ("runs `fa` without `num_splits`, which `forward` passes", None),
    ],
)
def test_a_combination_is_probed_by_the_feature_it_names(message: str, probe: str | None) -> None:
    found = PREDICTIONS["DCP406"].about(message)
    assert (found and found.probes) == (probe and (probe,))


def test_an_engines_backend_that_cannot_do_float32_is_run_in_what_it_lists() -> None:
    pool = MadeUp(Path(), ragged_i16=Signal.READ_UNOWNED)
    pool.float32_fails, pool.dtypes = True, ["bfloat16", "float16"]
    said = _verdict(pool)
    assert said.verdict is Verdict.CONFIRMED
    assert {run.dtype for run in said.runs} == {"bfloat16"}
    # One that can is run in it, whatever it lists: nothing tells more.
    pool.float32_fails = False
    assert {run.dtype for run in _verdict(pool).runs} == {"float32"}


def test_what_is_missing_names_the_card_that_the_backend_is_made_for() -> None:
    pool = MadeUp(Path(), ragged_i16=Signal.ERROR, single_rank=Signal.ERROR)
    pool.card = "9.0"
    said = _verdict(pool)
    assert said.execution is Execution.NOT_RUN
    assert said.reason.endswith("; made for compute capability 9.0")
    pool.lacking = "needs a card"
    assert _verdict(pool).reason == "needs a card"


def test_what_one_rank_alone_cannot_run_is_no_fault_of_sharding() -> None:
    pool = MadeUp(Path(), ragged_i16=Signal.ERROR)
    pool.unrun = (ALONE,)
    said = _verdict(pool)
    assert (said.execution, said.reason) == (Execution.NOT_RUN, "needs a compiled op")


@pytest.mark.parametrize(
    ("faults", "unrun", "verdict", "said"),
    [
        ({}, (), Verdict.REFUTED, "right in all 4 probes; so with a cache of fp8"),
        (
            {"fp8_cache_n2": Signal.ERROR},
            (),
            Verdict.CONFIRMED,
            "right in all 4 probes; but with a cache of fp8: made up",
        ),
        ({"fp8_cache_n2": Signal.LSE}, (), Verdict.REFUTED, "right in all 4 probes"),
        (
            {"fp8_cache_n1": Signal.ERROR, "fp8_cache_n2": Signal.ERROR},
            (),
            Verdict.REFUTED,
            "right in all 4 probes",
        ),
        ({}, ("fp8-cache-n1", "fp8-cache-n2"), Verdict.REFUTED, "right in all 4 probes"),
        ({"ragged_i16": Signal.ERROR}, (), Verdict.CONFIRMED, "made up"),
    ],
)
def test_a_claim_is_asked_of_a_cache_of_fp8_too(
    faults: dict[str, Signal], unrun: tuple[str, ...], verdict: Verdict, said: str
) -> None:
    """Where it is right on one rank: what cannot be run in fp8 here settles nothing."""
    pool = MadeUp(Path("engine"), **faults)
    pool.fp8, pool.unrun = True, unrun
    found = _verdict(pool, replace(CLAIM, alone=True))
    assert (found.verdict, found.reason) == (verdict, said)
