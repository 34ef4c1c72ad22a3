"""A record beside what the plan of the default branch asked for: the plan's word counts, not the record's."""

from __future__ import annotations

from kernelgate.bench.record import Card, CaseKey, Expected, RunRecord, expected_hash
from kernelgate.ci.github.run_info import RunInfo
from kernelgate.ci.judge import cards


def _of_pull_request(info: RunInfo) -> bool:
    """Else a command or a person asked, who may ask for fewer cases or others."""
    return (info.run.event or "").startswith("pull_request")


def held_to(plan: Expected, measured: RunRecord, info: RunInfo) -> RunRecord:
    """The record with what the plan asked for, and what the plan says of the cases, in place of what it says itself."""
    plan = plan.model_copy(update={"hash": plan.hash or expected_hash(plan)})
    known = {key: case for case in plan.cases for key in (CaseKey("", case.id), case.key)}
    cases = tuple(
        known[case.key].model_copy(update={"card": case.card}) if case.key in known else case for case in measured.cases
    )
    measured = measured.model_copy(update={"cases": cases})
    if not _of_pull_request(info):
        planned = {case.key for case in plan.cases}
        others = tuple(case for case in measured.cases if case.key not in planned)
        plan = plan.model_copy(update={"cases": (*plan.cases, *others)})
    return _with_own_cards(measured, plan).model_copy(update={"expected": plan})


def _with_own_cards(measured: RunRecord, plan: Expected) -> RunRecord:
    """The record in which every card that the default branch does not have is the head's own, whatever it says."""
    planned = {card.name for card in plan.cards}
    if not planned and plan.cases:
        return measured
    # A record may name no card, and its cases are known by their ids.
    own = cards.known(measured) - planned - ({""} if planned else set())
    listed = {name: Card(name=name) for name in sorted(own)} | {card.name: card for card in measured.cards}
    known = tuple(card.model_copy(update={"source": "head"}) if name in own else card for name, card in listed.items())
    return measured.model_copy(update={"cards": known})
