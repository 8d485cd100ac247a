"""Many rows and many fits: memory must not grow."""

import json
from tempfile import TemporaryDirectory

from robustness.faults import Row, Tally, python

BREATH = 2**28  # bytes that a batch may need for a moment

STREAM = """
import json, statistics
import kernelwright as kw
from robustness.faults import blobs
from tools.processes import memory
X, y = blobs(150)
model = kw.EmbeddingClassifier(random_state=0).fit(X, y)
held, total = [], 0
for number in range({batches}):
    batch, _ = blobs(10_000, seed=number)
    total += len(model.predict_proba(batch))
    held.append(memory())
few = max(len(held) // 10, 3)  # single moments vary: blocks are allocated and freed
print(json.dumps([total, statistics.median(held[:few]), statistics.median(held[-few:]), max(held)]))
"""

FITS = """
import json, warnings
warnings.simplefilter("ignore")
import kernelwright as kw
from robustness.faults import blobs
from tools.processes import memory
kinds = [
    kw.EmbeddingClassifier(random_state=0),
    kw.EmbeddingClassifier(kw.kernels.Gaussian("median"), learn=None),
    kw.KreinSVC(kw.kernels.Gaussian(2.0)),
    kw.EmbeddingNetworkClassifier(training=kw.networks.Training(max_epochs=2), random_state=0),
]
held = []
for number in range({fits}):
    X, y = blobs(60, seed=number)
    kinds[number % len(kinds)].fit(X, y).predict(X)
    held.append(memory())
print(json.dumps([len(held), held[len(held) // 10 - 1], held[-1]]))
"""

COMMAND = """
import json, sys, time
from pathlib import Path
import numpy as np
from robustness.faults import blobs
from tools.processes import memory
from kernelwright.cli import run
folder = Path({folder!r})
def table(n, name, labels):
    X, y = blobs(n)
    with open(folder / name, "w") as file:
        file.write("a,b,c,d,e,f" + ",y" * labels + chr(10))
        for row, label in zip(X.round(3).tolist(), y):
            file.write(",".join(map(str, row)) + ("," + "uvw"[label]) * labels + chr(10))
table(150, "train.csv", True)
table({rows}, "new.csv", False)
assert run(["fit", str(folder / "train.csv"), "-t", "y", "--no-cv", "--json", "-o", str(folder / "m.kw")]) == 0
started = time.perf_counter()
status = run(["predict", str(folder / "m.kw"), str(folder / "new.csv"), "-o", str(folder / "out.csv")])
lines = sum(1 for _ in open(folder / "out.csv")) - 1
print(json.dumps([status, lines, time.perf_counter() - started, memory("VmHWM")]), file=sys.stderr)
"""


def figures(*, quick: bool) -> list[Row]:
    """Measure three kinds of load."""
    return [_stream(12 if quick else 100), _fits(100 if quick else 1000), _command(20_000 if quick else 1_000_000)]


def _stream(batches: int) -> Row:
    tally = Tally(f"{batches * 10_000:,} rows predicted in batches at flat memory")
    total, early, late, most = json.loads(python(STREAM.format(batches=batches)).stdout)
    good = total == batches * 10_000 and late < 1.05 * early and most < early + BREATH
    tally.check(good, f"{early} bytes became {late}, {most} at most")
    held = f"{early / 2**20:.0f} MiB in the first tenth, {late / 2**20:.0f} MiB in the last"
    return tally.row(f"{held} (medians), {most / 2**20:.0f} MiB at most")


def _fits(fits: int) -> Row:
    tally = Tally(f"{fits:,} fits in one process without growth")
    n, early, late = json.loads(python(FITS.format(fits=fits)).stdout)
    tally.check(n == fits and late < 1.05 * early, f"{early} bytes became {late}")
    return tally.row(f"{early / 2**20:.0f} MiB after {fits // 10} fits, {late / 2**20:.0f} MiB at the end")


def _command(rows: int) -> Row:
    tally = Tally(f"kernelwright predict on a file of {rows:,} rows")
    with TemporaryDirectory() as folder:
        done = python(COMMAND.format(folder=folder, rows=rows))
        status, lines, seconds, most = json.loads(done.stderr.splitlines()[-1])
    tally.check((status, lines) == (0, rows), f"status {status}, {lines} lines")
    return tally.row(f"{seconds:.0f} s, {most / 2**30:.1f} GiB at most")
