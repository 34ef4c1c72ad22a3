"""The drawings of docs/visual-guide.md: the loop, a session with the policy's times, and how patterns come about."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from kernelgate.ci.document import drawing
from kernelgate.ci.document.drawing import END
from kernelgate.ci.explain import next_step
from kernelgate.ci.lab import state
from kernelgate.ci.lab.log import Opened
from tests.pages.sketch import arrow, box, picture


def pictures() -> Mapping[str, str]:
    return {"guide_loop": _loop(), "guide_session": _session(), "guide_patterns": _patterns()}


def _loop() -> str:
    said = "The loop: believe, change one thing, try, decide, learn, and from there again; from learn also to close"
    return picture(
        said, 408,
        box((28, 12), 145, ["believe", "what holds it back,", "what a change gains"]),
        arrow((173, 43), (203, 43)),
        box((203, 12), 145, ["change one thing", "in the sources", ""]),
        arrow((276, 75), (276, 106)),
        drawing.text(266, 95, "kernelgate session try", "small", END),
        box((28, 106), 320, ["try", "compile, fuzz, time beside the state before",
             "in the same processes, profile both"], "now"),
        arrow((100, 169), (100, 194)), arrow((276, 169), (276, 194)),
        box((28, 194), 145, ["keep", "certain, and by", "enough"], "good"),
        box((203, 194), 145, ["revert", "anything else; the", "patch is kept"], "bad"),
        arrow((100, 257), (100, 282)), arrow((276, 257), (276, 282)),
        box((28, 282), 320, ["learn", "the log has the gain, its interval, its cause"]),
        arrow((276, 328), (276, 353)), box((203, 353), 145, ["close", "the report"]),
        arrow((100, 328), (100, 353), (12, 353), (12, 43), (28, 43)),
        drawing.text(110, 350, "again", "small"),
    )  # fmt: skip


def _session() -> str:
    listed = [gate for gate in state.gate_states((Opened(name="", objective=""),)) if gate.name != "document"]
    total = state.OPTIMISE_MINUTES
    drawn, y = drawing.text(12, 22, "gates, in this order", "small"), 32.0
    for gate in listed:
        lines = [gate.name, f"at most {gate.limit_minutes:g} min"]
        below = f"only below {next_step.PROFILE_BELOW:g}× the reference"
        profile = gate.name == "profile"
        drawn += box((12, y), 186, [*lines, below] if profile else lines, "now" if profile else "box")
        y += 63 if profile else 46
        drawn += arrow((100, y), (100, y + 18))
        y += 18
    changes = [
        "changes, one after the other",
        f"{state.CHANGE_MINUTES:g} min; each is tried, then kept or reverted",
    ]
    again = ["measure again", f"{state.AGAIN_MINUTES:g} min, against the reference"]
    close = ["close", f"{state.DOCUMENT_MINUTES:g} min, the report"]
    failed = ["a gate fails", "do what it says,", "pass it again"]
    gone = [
        "stop", f"{total:g} min, the money,", f"or {state.WITHOUT_GATE_MINUTES:g} min without",
        "a passed gate",
    ]  # fmt: skip
    said = f"A session: {', '.join(gate.name for gate in listed)}; then changes, measuring again, and the report"
    return picture(
        said, y + 186,
        drawn,
        box((12, y), 336, changes, "good"), arrow((100, y + 46), (100, y + 64)),
        box((12, y + 64), 336, again), arrow((100, y + 110), (100, y + 128)),
        box((12, y + 128), 336, close),
        drawing.text(212, 22, "at any time", "small"),
        box((212, 32), 136, failed, "bad"), box((212, 113), 136, gone, "bad"),
    )  # fmt: skip


def _patterns() -> str:
    said = "A pattern: seen in sessions' logs, written down by a person, kept as a file, applied in the next session"
    steps = [
        ("now", ["a session's log", "what cost time, mistakes, notes"]),
        ("box", ["a person reviews", "/kernelgate pattern NAME: what to do"]),
        ("good", ["docs/patterns", "a file with signals, by pull request"]),
        ("box", ["the next session", "is told which signals are seen now,", "by kernelgate patterns; an agent",
                 "by kernelgate prompt"]),
    ]  # fmt: skip
    drawn, y = Markup(""), 12.0
    for at, (kind, lines) in enumerate(steps):
        drawn += box((40, y), 308, lines, kind)
        if at + 1 < len(steps):
            drawn += arrow((194, y + 46), (194, y + 68))
            y += 68
    return picture(said, y + 92, drawn, arrow((40, y + 40), (16, y + 40), (16, 35), (40, 35)))
