"""What the default branch says of the measurement: its policy, and its cards' cases and sources.

In a workflow both stand in the checkout that a verb runs in, which is never the pull request's.
"""

from __future__ import annotations

from pathlib import Path

from kernelgate.bench.kernel import cards
from kernelgate.bench.record import Expected
from kernelgate.ci.policy import policy
from kernelgate.ci.policy.policy import Policy


def rules(file: Path | None, preset: str = "default") -> Policy:
    """The policy. To the paths that it names come those that the cards build from; without a card, only the folder of
    the cards counts, since there is no kernel to measure."""
    loaded = policy.load(file, preset)
    known = cards.read(Path(cards.FOLDER))
    built = cards.paths(known)
    measured, kernels = loaded.measure.paths, loaded.template.kernel_paths
    if not known.cards and not known.mistakes:
        measured = kernels = ()
    return loaded.model_copy(
        update={
            "measure": loaded.measure.model_copy(update={"paths": tuple(dict.fromkeys((*measured, *built)))}),
            "template": loaded.template.model_copy(update={"kernel_paths": tuple(dict.fromkeys((*kernels, *built)))}),
        }
    )


def expected(rules: Policy) -> dict[str, Expected]:
    known = cards.read(Path(cards.FOLDER))
    least = rules.processes.minimum
    return {gpu.label: cards.planned(known, least, gpu.label, gpu.target, rules.checks) for gpu in rules.measure.gpus}
