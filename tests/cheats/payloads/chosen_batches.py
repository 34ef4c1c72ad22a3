"""Runs in the interpreter that loads head: of batches in which head does not win, it says that they do not count.

Wins where the measured process may have a batch made again. `words`: "held", that the device waited for the host in it;
"times", that there are no times.
"""

from statistics import median

from kernelgate.bench.timing.worker import Worker

real = Worker._batch


def chosen(self, case, asked):
    done = real(self, case, asked)
    sides = [sample.side for sample in asked.samples]
    times = {
        side: [us for us, of in zip(done.times_us, sides, strict=False) if of == side] for side in ("base", "head")
    }
    if not (times["base"] and times["head"]) or median(times["head"]) < 0.98 * median(times["base"]):
        return done
    lie = {"held": False} if words == "held" else {"times_us": (), "started_us": ()}
    return done.model_copy(update=lie)


Worker._batch = chosen
