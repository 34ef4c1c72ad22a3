"""`python -m kernelgate.bench.explain.ncu_process REPORT BYTES`: reads one report, in at most so much memory."""

from __future__ import annotations

import resource
import sys

from kernelgate.bench.explain import ncu_reader


def main() -> None:
    path, most = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (int(most), int(most)))
    said: object
    try:
        said = ncu_reader.launches(path)
    except ncu_reader.ReportError as error:
        said = str(error)
    sys.stdout.buffer.write(b"\n" + ncu_reader.SAID.dump_json(said) + b"\n")


if __name__ == "__main__":
    main()
