"""A measurement as two jobs of a Slurm cluster: an array with a task for each shard, and one that merges and judges.

Slurm schedules, requeues and counts; here are only the two scripts, and the calls that submit them.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kernelgate.bench.core import files
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.system.preemption import NOTICE_S

MAX_RESTARTS: Final = 10
"""A shard that was cut off so often has not been preempted by chance."""
ARRAY, MERGE = "shards.sh", "merge.sh"

SHARD_BODY: Final = """
shard=$SLURM_ARRAY_TASK_ID
attempt=${SLURM_RESTART_COUNT:-0}
record=$output/shard-$shard.json
# Each attempt has a file of its own: one that Slurm has given up may still be writing to its own.
partial=$output/shard-$shard-attempt-$attempt.json
[ ! -e "$record" ] || exit 0

# Slurm asks this shell alone to end. The measurement then finishes what it can, and keeps the rest.
child='' noticed='' stopping=''
trap 'noticed=yes stopping=yes; [ -z "$child" ] || kill -TERM "$child"' TERM
run() {
  local code
  [ -z "$stopping" ] || return 75
  "$@" &
  child=$!
  while :; do
    noticed=''
    code=0
    wait "$child" || code=$?
    [ -n "$noticed" ] || break
  done
  child=''
  return "$code"
}

again() {
  if [ "$attempt" -ge "$max_restarts" ]; then
    echo "kernelgate: shard $shard was cut off $attempt times and is given up; what it has is merged" >&2
    exit "$1"
  fi
  scontrol requeue "$SLURM_JOB_ID"
  exit "$1"
}

for ((earlier = attempt - 1; earlier >= 0; earlier--)); do
  if [ ! -e "$partial" ] && [ -e "$output/shard-$shard-attempt-$earlier.json" ]; then
    cp "$output/shard-$shard-attempt-$earlier.json" "$partial.copy"
    mv "$partial.copy" "$partial"
  fi
done

fuzzed=()
if [ "$shard" -eq 1 ]; then
  if [ ! -e "$output/fuzz.json" ]; then
    code=0
    run "${kernelgate[@]}" fuzz --ref "$head" --base "$base" --seed "$seed" "${how[@]}" \\
      --output "$output/fuzz.json" || code=$?
    if [ -n "$stopping" ] || [ "$code" -gt 128 ]; then
      again "$code"
    fi
  fi
  [ ! -e "$output/fuzz.json" ] || fuzzed=(--fuzz "$output/fuzz.json")
fi

code=0
run "${kernelgate[@]}" bench --base "$base" --head "$head" --seed "$seed" --shard "$shard/$shards" --resume \\
  --output "$partial" "${how[@]}" "${fuzzed[@]}" "${more[@]}" || code=$?
if [ "$code" -eq 75 ] || [ "$code" -gt 128 ]; then
  again "$code"
fi
[ "$code" -eq 0 ] || exit "$code"

# What explains a verdict. Its failure is written into the record, and stops nothing.
if [ "$shard" -eq 1 ] && [ -n "$gpu" ]; then
  run "${kernelgate[@]}" sanitize --ref "$head" --base "$base" "${how[@]}" --quick --record "$partial" || true
  run "${kernelgate[@]}" profile --head "$head" --base "$base" "${how[@]}" --out "$output/profile" \\
    --record "$partial" || true
  [ -z "$stopping" ] || again 75
fi
mv "$partial" "$record"
"""

MERGE_BODY: Final = """
records=()
for ((shard = 1; shard <= shards; shard++)); do
  if [ -e "$output/shard-$shard.json" ]; then
    records+=("$output/shard-$shard.json")
    continue
  fi
  for ((attempt = max_restarts; attempt >= 0; attempt--)); do
    if [ -e "$output/shard-$shard-attempt-$attempt.json" ]; then
      records+=("$output/shard-$shard-attempt-$attempt.json")
      break
    fi
  done
done
if [ "${#records[@]}" -eq 0 ]; then
  echo "kernelgate: no shard left a record: the logs in $output say why" >&2
  exit 3
fi
"${kernelgate[@]}" merge "${records[@]}" --output "$output/run.json"
"${kernelgate[@]}" report "$output/run.json" --output "$output/comment.md"
code=0
"${kernelgate[@]}" compare "$output/run.json" || code=$?
# Slurm calls a job failed unless it ends with 0: that no gate acts is no failure.
[ "$code" -ne 2 ] || code=0
exit "$code"
"""


@dataclass(frozen=True)
class Submission:
    kernelgate: tuple[str, ...]
    repository: Path
    output: Path
    base: str
    head: str
    seed: int
    shards: int
    gpu: str | None = None
    partition: str | None = None
    times: Path | None = None
    from_cards: Path | None = None
    python: Path | None = None

    def array_script(self) -> str:
        options = {
            "array": f"1-{self.shards}",
            "signal": f"B:TERM@{NOTICE_S:.0f}",
            "output": self.output / "shard-%a.log",
            "open-mode": "append",
            "gres": f"gpu:{self.gpu}:1" if self.gpu else None,
        }
        variables = {"base": self.base, "head": self.head, "seed": self.seed, "gpu": self.gpu or ""}
        more = ("--times", str(self.times)) if self.times else ()
        named = {"--cards": self.from_cards, "--python": self.python}
        how = [word for name, path in named.items() if path for word in (name, str(path.absolute()))]
        head = [*self._head("kernelgate", options), "#SBATCH --requeue", *self._variables(variables)]
        return "\n".join([*head, f"more=({shlex.join(more)})", f"how=({shlex.join(how)})", SHARD_BODY.lstrip("\n")])

    def merge_script(self) -> str:
        head = self._head("kernelgate-merge", {"output": self.output / "merge.log"})
        return "\n".join([*head, *self._variables({}), MERGE_BODY.lstrip("\n")])

    def _head(self, name: str, options: Mapping[str, object]) -> list[str]:
        every = {"job-name": name, "chdir": self.repository, "partition": self.partition, **options}
        return ["#!/bin/bash", *(f"#SBATCH --{key}={value}" for key, value in every.items() if value is not None)]

    def _variables(self, more: Mapping[str, object]) -> list[str]:
        every = {"output": self.output, "shards": self.shards, "max_restarts": MAX_RESTARTS, **more}
        lines = [f"{key}={shlex.quote(str(value))}" for key, value in every.items()]
        return ["set -euo pipefail", *lines, f"kernelgate=({shlex.join(self.kernelgate)})"]


def submit(output: Path, scripts: Mapping[str, str]) -> tuple[int, int]:
    """Writes both scripts and hands them to Slurm: the jobs that measure and merge. Raises KernelgateError in Slurm's
    words where it refuses one."""
    for name, text in scripts.items():
        files.write(output / name, text)
    array = _sbatch([str(output / ARRAY)])
    try:
        # Any end: of a shard that is lost, the others still tell something.
        return array, _sbatch([f"--dependency=afterany:{array}", str(output / MERGE)])
    except KernelgateError as error:
        raise KernelgateError(f"{error}; job {array} measures all the same: `scancel {array}` ends it") from None


def _sbatch(words: Sequence[str]) -> int:
    try:
        done = subprocess.run(["sbatch", "--parsable", *words], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise KernelgateError(
            "sbatch is not installed here: submit from a machine of the cluster, or print the scripts with --dry-run"
        ) from None
    job = done.stdout.strip().partition(";")[0]
    if done.returncode or not job.isdecimal():
        said = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise KernelgateError(f"Slurm refused {words[-1]}: {said}")
    return int(job)
