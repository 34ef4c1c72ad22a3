"""The one name under which kernelgate is installed: `kernelgate.bench` measures, `kernelgate.ci` judges and reports.

In a checkout both lie at the top of the repository, beside this folder; an installed copy has them inside it.
"""

from pathlib import Path

_HERE = Path(__file__).resolve().parent
if not (_HERE / "bench").is_dir():
    __path__.append(str(_HERE.parent))
