"""Runs fuzz trials in a process of its own. Started and read by trial_process.py; what a trial does is in ways.py."""

from __future__ import annotations

import sys
from contextlib import nullcontext

import torch

from kernelgate.bench.check import ways
from kernelgate.bench.check.examine import KernelCallError, Subject
from kernelgate.bench.check.trial_process import FuzzRequest, TrialOutcome
from kernelgate.bench.check.tried import InapplicableError, UntriedError
from kernelgate.bench.kernel import calls, compare, loading, triton_runtime
from kernelgate.bench.kernel.fuzz_trials import WAY, Trial
from kernelgate.bench.system.worker import Leader, Ready


def examine(subject: Subject, trial: Trial) -> TrialOutcome:
    """Runs a trial and says what is wrong."""
    done = ways.examined(subject, trial)
    return TrialOutcome(
        fault=done.fault,
        max_abs_error=compare.largest([one.max_abs_error for one in done.comparisons]),
        error_ratio=compare.largest([one.error_ratio for one in done.comparisons]),
        note=done.note,
        repeatable=done.repeatable,
    )


def _without_result(fault: str, device: str) -> TrialOutcome:
    return TrialOutcome(fault=fault, max_abs_error=None, error_ratio=None, last=_beyond_use(device))


def _untried(why: str, device: str) -> TrialOutcome:
    return TrialOutcome(fault=None, max_abs_error=None, error_ratio=None, untried=why, last=_beyond_use(device))


def _beyond_use(device: str) -> bool:
    """Whether the error was of the kind that a CUDA context does not survive."""
    try:
        if device == "cuda":
            torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False


def try_each(request: FuzzRequest, leader: Leader) -> None:
    """Loads the library, then tries trials until one leaves the device beyond use."""
    with triton_runtime.shared([request.library.folder]):
        judge = loading.load(request.card)
        subject = Subject(judge, calls.bind(request.library.read(), judge, "head"), request.device)
        leader.send(Ready())
        outcome = None
        while outcome is None or not outcome.last:
            outcome = _tried(subject, request, leader.receive(Trial))
            leader.send(outcome)


def _tried(subject: Subject, request: FuzzRequest, trial: Trial) -> TrialOutcome:
    try:
        with triton_runtime.one_config(trial.id) if "triton" in sys.modules else nullcontext():
            return examine(subject, trial)
    except KernelCallError as error:
        return _without_result(str(error), request.device)
    except InapplicableError as error:
        return _untried(str(error), request.device).model_copy(update={"inapplicable": True})
    except UntriedError as error:
        return _untried(str(error), request.device)
    except Exception as error:
        mistake = str(loading.mistake_of(request.card, "", error))
        # What a card lists itself, it must be able to make.
        own = WAY not in trial.axes
        why, made = (f"not checked: {mistake}", _without_result) if own else (mistake, _untried)
        return made(why, request.device)
