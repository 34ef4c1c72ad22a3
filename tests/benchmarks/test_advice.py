"""The page on advice gives the figures of the sessions that are kept."""

from __future__ import annotations

from benchmarks import advice
from kernelgate.ci.lab import calibration, outcomes
from kernelgate.ci.policy import policy
from tests.ci.lab.made_up import telling


def test_the_page_and_the_plot_are_of_the_logs_that_are_kept() -> None:
    known = outcomes.read(advice.ROOT / outcomes.FOLDER)
    found = calibration.calibrate(known, policy.load(advice.ROOT / policy.POLICY_FILE))
    assert advice.text(found, known) in advice.DOCUMENT.read_text(encoding="utf-8"), "python -m benchmarks.advice"
    assert advice.PLOT.read_text(encoding="utf-8") == advice.plot(found.bins)


def test_whether_the_chances_are_followed_is_said() -> None:
    known = telling()
    text = advice.text(calibration.calibrate(known, policy.Policy()), known)
    assert "**40 outcomes of 8 sessions** on NVIDIA H200; 16 helped." in text
    assert "The interval lies above zero: `recommend` follows the chances." in text
    assert "| swizzle | bank_conflicts | 8 | 8 | 0 | 30.0 to 30.0% |" in text
