"""What happens inside a process of the pool. The only modules that import torch start here."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dcplint.harness import bf16, ledger, missing
from dcplint.harness.faster import slow_down, speed_up
from dcplint.harness.interpreter import (
    Canary,
    complete_interface,
    enable_interpreter,
    healthy_dtypes,
    repair_scalar_masks,
    stub_autotuning,
)
from dcplint.harness.job import (
    GQA_CONTROL,
    MLA_CONTROL,
    Job,
    Mode,
    failed,
    measurement_to_json,
)
from dcplint.harness.ledger import Unavailable
from dcplint.harness.model import Execution, Measurement, Probe, Signal
from dcplint.harness.site import Watch, watch


def prepare(device: str, engine: str, drivers: Sequence[str] = ()) -> dict[str, Any]:
    """Import everything once, choose compiled or interpreted, and check the machine's arithmetic.

    engine: the folder that an engine to be run lies in, empty for none. drivers: references to the
    configured ones. Returns what every verdict of this process and its children must say about its
    environment.
    """
    unrepaired = ""
    if device == "cpu":
        enable_interpreter()
    import torch
    import triton

    # One thread: children are forked from here, and a thread pool does not survive that.
    torch.set_num_threads(1)
    # Fills whatever is allocated without a value with NaN: reading it must show.
    torch.use_deterministic_algorithms(True, warn_only=True)
    if device == "cpu":
        unrepaired = bf16.repair()
        repair_scalar_masks()
        speed_up()
        stub_autotuning()
        complete_interface()
    from dcplint.harness import rank_program, targets  # noqa: F401  (before forking)

    measured = _measured() if device == "cpu" else ()
    if device == "cpu":
        _warm_up()
    if engine:
        from dcplint.harness.vllm import engine as vllm

        vllm.prepare(Path(engine), device)
    targets.configure(drivers)
    return {
        "torch": torch.__version__,
        "triton": triton.__version__,
        "device": device,
        "healthy": sorted(healthy_dtypes(measured)),
        "failed": [asdict(c) for c in measured if not c.passed],
        "unrepaired": unrepaired,
    }


def _measured() -> tuple[Canary, ...]:
    """Canaries, after patches that do harm in this release of triton were taken back."""
    from dcplint.harness import canaries

    measured = canaries.run()
    for undo, redo in ((slow_down, speed_up), (bf16.restore, bf16.repair)):
        if all(canary.passed for canary in measured):
            break
        undo()
        plain = canaries.run()
        if healthy_dtypes(plain) > healthy_dtypes(measured):
            measured = plain
        else:
            redo()
    return measured


def _warm_up() -> None:
    """Run our own kernels once: the interpreter rewrites a kernel's source at its first launch."""
    from dcplint.harness.recorder import forget_launches

    for control in (GQA_CONTROL, MLA_CONTROL):
        execute(Job(control, "single-rank", 2), 0, "")
    forget_launches()


def describe(target: str, world_size: int) -> dict[str, Any]:
    """What a backend claims, the probes that apply to it, and which of them are the core set."""
    from dcplint.harness.probes import all_probes, core_probes
    from dcplint.harness.targets import find_driver, load_target

    try:
        cls = load_target(target)
        claims = find_driver(cls).claims(cls)
    except ModuleNotFoundError:
        raise  # it may be the backend's own that was misspelt
    except Exception as error:
        reason = missing.lacking(error)
        if not reason:
            raise
        return {"lacking": reason}
    return {
        "lacking": "",
        "claims": asdict(claims),
        "probes": [p.name for p in all_probes(claims, world_size)],
        "core": [p.name for p in core_probes(claims, world_size)],
    }


def backends(path: str, home: str, symbol: str) -> dict[str, Any]:
    """The backends that a file defines and that run `symbol` of the file `home`.

    Where the symbol lies in a class, those in whose classes it takes part; of a function only a run
    can tell. `said`: why others are left out.
    """
    from dcplint.harness.loading import load_file
    from dcplint.harness.targets import backends_in

    found, said = backends_in(Path(path))
    owner = _class_of(load_file(Path(home)), symbol)
    if owner is not None:
        others = [t for t, parts in found.items() if not any(issubclass(p, owner) for p in parts)]
        said.extend(f"`{t.rpartition(':')[2]}` does not run `{owner.__name__}`" for t in others)
        found = {target: parts for target, parts in found.items() if target not in others}
    return {"targets": list(found), "said": said}


def _class_of(module: Any, symbol: str) -> type | None:
    """The innermost class that a dotted name lies in or names; None for a function's."""
    owner = None
    found = module
    for name in symbol.split("."):
        found = getattr(found, name, None)
        if not isinstance(found, type):
            break
        owner = found
    return owner


def fallback(request: dict[str, Any]) -> dict[str, Any]:
    """See `fallback.probe_fallback`; a condition that cannot be followed is an `error`."""
    from dcplint.harness.fallback import NOWHERE, branch_at, probe_fallback
    from dcplint.harness.targets import find_driver, load_target

    target, path = load_target(request["target"]), Path(request["path"])
    find_driver(target).parts(target)
    watched = watch(path, request["line"])
    span = NOWHERE
    if request["branch"]:
        try:
            span = branch_at(path.read_text(encoding="utf-8"), *request["branch"])
        except LookupError as error:
            return {"error": str(error)}
    field, world_size = request["field"], request["world_size"]
    seen = probe_fallback(find_driver(target), target, path, span, field, world_size)
    return {**asdict(seen), "reached": watched.reached}


def rebuild(request: dict[str, Any]) -> dict[str, Any]:
    """See `vllm.rebuild.probe_rebuild`; a function that cannot be driven is an `error`."""
    from dcplint.harness.loading import load_file
    from dcplint.harness.vllm.rebuild import probe_rebuild

    try:
        function: Any = load_file(Path(request["path"]))
        for name in request["symbol"].split("."):
            function = getattr(function, name)
        return asdict(probe_rebuild(function, request["world_size"]))
    except (Unavailable, ImportError, AttributeError) as error:
        return {"error": str(error)}


def execute(job: Job, rank: int, rendezvous: str) -> dict[str, Any]:
    """Run a job's share of one process: all ranks if they are emulated, else one."""
    if job.kernels:
        import dcplint.harness.kernels as kernels

        kernels.__path__ = [job.kernels]
        for name in [n for n in sys.modules if n.startswith(f"{kernels.__name__}.")]:
            del sys.modules[name]  # our own, which this process has already run
    try:
        if job.mode == Mode.EMULATED.value:
            return _emulate(job)
        return _participate(job, rank, f"file://{rendezvous}")
    except Unavailable as error:
        return _answer(job, Watch(), [], str(error))


def participate_under_torchrun(job: Job) -> dict[str, Any]:
    """Run one rank in a process that torchrun started."""
    return _participate(job, int(os.environ["RANK"]), "env://")


def _emulate(job: Job) -> dict[str, Any]:
    from dcplint.harness.rank_program import run_rank
    from dcplint.harness.ranks import emulate

    target, driver, probe, watched = _resolve(job)
    results = emulate(
        probe.topology.world_size,
        lambda group: run_rank(driver, target, probe, job.dtype, job.device, job.seed, group),
    )
    measurements: list[Measurement] = []
    for rank, result in enumerate(results):
        reason = missing.lacking(result)
        if reason:
            return _answer(job, watched, [], reason)
        if isinstance(result, BaseException):
            measurements.append(_failure(rank, result))
        else:
            measurements.extend(result)
    return _answer(job, watched, measurements)


def _participate(job: Job, rank: int, init_method: str) -> dict[str, Any]:
    import torch.distributed as dist

    from dcplint.harness.rank_program import run_rank
    from dcplint.harness.ranks import ProcessGroup

    target, driver, probe, watched = _resolve(job)
    # A probe of one rank alone has nobody to meet; the other processes have nothing to do.
    world_size = probe.topology.world_size
    if rank >= world_size:
        return _answer(job, watched, [])
    backend = "nccl" if job.device == "cuda" else "gloo"
    dist.init_process_group(backend, init_method=init_method, rank=rank, world_size=world_size)
    local_rank = os.environ.get("LOCAL_RANK", str(rank))
    device = f"cuda:{local_rank}" if job.device == "cuda" else job.device
    try:
        found = run_rank(driver, target, probe, job.dtype, device, job.seed, ProcessGroup())
        return _answer(job, watched, list(found))
    except Exception as error:
        reason = missing.lacking(error)
        return _answer(job, watched, [] if reason else [_failure(rank, error)], reason)


def _resolve(job: Job) -> tuple[type, Any, Probe, Watch]:
    """What a job names. Raises Unavailable: what cannot be loaded here has not been run."""
    try:
        return _load(job)
    except Exception as error:  # foreign code, which may raise anything
        reason = missing.lacking(error) or f"it cannot be loaded: {missing.describe(error)}"
        raise Unavailable(reason) from error


def _load(job: Job) -> tuple[type, Any, Probe, Watch]:
    from dcplint.harness.loading import load_file
    from dcplint.harness.probes import all_probes
    from dcplint.harness.targets import find_driver, load_target

    target = load_target(job.target)
    driver = find_driver(target)
    known = {p.name: p for p in all_probes(driver.claims(target), job.world_size)}
    if job.probe not in known:
        raise Unavailable(f"no probe `{job.probe}` applies to it")
    if not job.site:
        return target, driver, known[job.probe], Watch()
    path, _, line = job.site.rpartition(":")
    driver.parts(target)  # loads what it runs
    load_file(Path(path))
    return target, driver, known[job.probe], watch(Path(path), int(line))


def _failure(rank: int, error: BaseException) -> Measurement:
    from dcplint.harness.driver import Refused, RefusedLate
    from dcplint.harness.ranks import Divergence

    if isinstance(error, RefusedLate):
        return failed(Signal.REFUSED_LATE, rank, str(error))
    if isinstance(error, Refused):
        return failed(Signal.REFUSED, rank, str(error))
    if isinstance(error, Divergence):
        return failed(Signal.HANG, rank, str(error))
    if isinstance(error, MemoryError) or "allocate memory" in str(error):
        return failed(Signal.CRASH, rank, "out of memory")
    # What the interpreter wraps is what the kernel did.
    cause = error.__cause__ if type(error).__name__ == "InterpreterError" else None
    return failed(Signal.ERROR, rank, missing.describe(cause or error)[:400])


def _answer(
    job: Job, watched: Watch, measurements: list[Measurement], lacking: str = ""
) -> dict[str, Any]:
    from dcplint.harness.recorder import interpreted_launches

    if lacking:
        execution = Execution.NOT_RUN
    elif ledger.substituted():
        execution = Execution.SUBSTITUTED
    elif job.device.startswith("cuda"):
        execution = Execution.NATIVE_CUDA
    else:
        execution = Execution.INTERPRETED if interpreted_launches() else Execution.NATIVE_CPU
    return {
        "measurements": [measurement_to_json(m) for m in measurements],
        "execution": execution.value,
        "lacking": lacking,
        "substituted": list(ledger.substituted()),
        "stubbed": list(ledger.stubbed()),
        "reached": watched.reached,
    }
