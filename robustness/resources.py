"""Too little memory, disk, permission or cores: refused in advance, with a clear error, old files untouched."""

import contextlib
import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from unittest.mock import patch

import numpy as np

import kernelwright as kw
from kernelwright.research.experiments.runner import Experiment, Task, read_results, run
from kernelwright.storage.files import write_whole
from robustness.faults import ROOT, Row, Tally, blobs, python

LARGEST_RATIO = 1.3  # of measured memory to its estimate
SMALL_THINGS = 2**26  # bytes that even a tiny fit needs: estimates count matrices only


def figures(*, quick: bool) -> list[Row]:
    """Make a row for each scarce resource."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        rows = [_refusals(), _peaks({CLASSIFIER.format(None, "exact"): (1000,)} if quick else FITTED)]
        rows += [_full_disk(place), _read_only(place), _many_writers(place, 4 if quick else 8)]
        return rows if quick else [*rows, _no_home(place), _one_core()]


# Memory ------------------------------------------------------------------------------------------------

SOLVERS = ("exact", "nystroem", "fourier", "herding")
GAUSSIAN = kw.kernels.Gaussian(1.0)


def _refusals() -> Row:
    """Check that every estimator with a matrix of its rows says what it needs, and what to do instead."""
    tally = Tally("fits that cannot fit are refused with an estimate")
    X, y = blobs(300)
    estimators = [kw.EmbeddingClassifier(GAUSSIAN, solver=solver) for solver in ("auto", *SOLVERS)]
    estimators += [
        kw.ConditionalMeanEmbedding(),
        kw.KreinSVC(GAUSSIAN),
        kw.EmbeddingNetworkClassifier(kernel=GAUSSIAN),
        kw.HyperKernelRidge(solver="exact"),
        kw.HyperKernelRidge(),
        kw.HyperKernelSVR(),
        kw.LearnedKernelClassifier(),
        kw.research.baselines.DataAdaptiveKernel(),
        kw.research.baselines.BayesianMKL(),
        kw.research.baselines.IndefiniteMKL(),
    ]
    for estimator in estimators:
        with patch("kernelwright.numerics.memory.free_memory", lambda: 1e5):
            try:
                estimator.fit(X, y)
                tally.check(False, f"{estimator} was not refused")
            except kw.MemoryBudgetError as error:
                tally.check("needs about" in str(error) and str(error).count(". ") >= 1, error)
    return tally.row()


PEAK = """
import sys, warnings
warnings.simplefilter("ignore")
import kernelwright as kw
import kernelwright.research.baselines, kernelwright.hyper, kernelwright.hyperkernels
from robustness.faults import blobs
from tools.processes import peak_of
from kernelwright.numerics import memory

estimates = []

def noting(n_bytes, what, instead, check=memory.check_memory):
    estimates.append(n_bytes)
    check(n_bytes, what, instead)

def fit(n):
    X, y = blobs(n)
    return lambda: MODEL.fit(X, y)

fit(20)()  # lazy imports do not count
for module in list(sys.modules.values()):
    if getattr(module, "check_memory", None) is memory.check_memory and module is not memory:
        module.check_memory = noting
print(peak_of(fit(ROWS)) / (max(estimates) + SMALL_THINGS))
"""
CLASSIFIER = "kw.EmbeddingClassifier({}, solver={!r}, random_state=0)"
TWO_STEPS = "optimizer=kw.learning.LBFGS(2)"
LEARNED = (f"kw.learning.LeaveOneOut({TWO_STEPS})", f"kw.learning.Rademacher({TWO_STEPS})")
# Models and numbers of rows, large enough for matrices to outweigh everything else.
FITTED: dict[str, tuple[int, ...]] = {
    CLASSIFIER.format(None, "exact"): (1000, 2000, 4000),
    CLASSIFIER.format(None, "nystroem"): (1000, 2000, 4000),
    CLASSIFIER.format("kw.kernels.Gaussian()", "fourier"): (1000, 2000, 4000),
    CLASSIFIER.format(None, "herding"): (1000, 2000, 4000),
    **{f"kw.EmbeddingClassifier(learn={learn})": (3000,) for learn in LEARNED},
    f"kw.EmbeddingClassifier(learn={LEARNED[0]}, solver=kw.solvers.Exact('single'))": (3000,),
    "kw.ConditionalMeanEmbedding()": (2000,),
    "kw.KreinSVC(kw.kernels.Gaussian())": (3000,),
    "kw.EmbeddingNetworkClassifier(kernel=kw.kernels.Gaussian(), training=kw.networks.Training(max_epochs=2))": (3000,),
    "kw.HyperKernelRidge(solver='exact')": (80,),
    "kw.HyperKernelRidge(solver='exact', nonnegative=True)": (50,),
    "kw.HyperKernelRidge()": (1000,),
    "kw.HyperKernelRidge(nonnegative=True)": (1000,),
    "kw.HyperKernelRidge(kw.hyperkernels.Wishart())": (200,),
    "kw.HyperKernelRidge(kw.hyperkernels.Wishart(), solver=kw.hyper.LandmarkPairs(60))": (100,),
    "kw.HyperKernelSVR()": (600,),
    "kw.HyperKernelSVR(solver='exact')": (60,),
    "kw.LearnedKernelClassifier()": (1500,),
    "kw.research.baselines.DataAdaptiveKernel()": (600,),
    "kw.research.baselines.BayesianMKL()": (400,),
    "kw.research.baselines.IndefiniteMKL()": (400,),
}


def _peaks(fitted: dict[str, tuple[int, ...]]) -> Row:
    tally = Tally(f"fits stay below {LARGEST_RATIO} times their estimate")
    ratios = []
    for model, sizes in fitted.items():
        for n in sizes:
            code = PEAK.replace("MODEL", model).replace("ROWS", str(n)).replace("SMALL_THINGS", str(SMALL_THINGS))
            ratios.append(float(python(code).stdout))
            tally.check(ratios[-1] < LARGEST_RATIO, f"{model}, {n} rows: {ratios[-1]:.2f}")
    return tally.row(f"{len(fitted)} kinds of fits: {min(ratios):.2f} to {max(ratios):.2f} times")


# Disks -------------------------------------------------------------------------------------------------


def _writers(folder: Path) -> dict[str, Callable[[], object]]:
    """List what writes files; each must leave an old file as it was."""
    X, y = blobs(200)
    model = kw.EmbeddingClassifier(GAUSSIAN, learn=None).fit(X, y)
    training = kw.networks.Training(max_epochs=2, checkpoint=folder / "checkpoint")
    network = kw.EmbeddingNetworkClassifier(hidden=(64, 64), training=training)
    task = Task("row", "column", 0, _many_numbers)
    return {
        "model.kw": lambda: kw.save(model, folder / "model.kw"),
        "page.html": lambda: write_whole(folder / "page.html", bytes(10**6)),
        "checkpoint": lambda: network.fit(X, y),
        "toy.csv": lambda: run(Experiment("toy", "A toy", lambda quick: [task]), folder),
    }


def _many_numbers() -> dict[str, float]:
    return {f"measure {k}": k / 3 for k in range(2000)}


@contextlib.contextmanager
def _small_files(n_bytes: int) -> Iterator[None]:
    """Limit the size of files: a write fails in the middle, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@contextlib.contextmanager
def _small_disk(folder: Path, size: str) -> Iterator[Path]:
    """Mount a file system in memory if allowed; else use the folder itself."""
    folder.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    mounted = shutil.which("mount") and subprocess.run(command, capture_output=True).returncode == 0
    try:
        yield folder
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)


def _fails_well(tally: Tally, folder: Path, kinds: tuple[int, ...], limit: contextlib.AbstractContextManager) -> None:
    for name, write in _writers(folder).items():
        write()
        before = (folder / name).read_bytes()
        if name in ("checkpoint", "toy.csv"):  # these resume, so there must be something left to do
            (folder / name).unlink()
            before = b""
        with limit:
            try:
                write()
                tally.check(False, f"{name} was written")
                continue
            except (OSError, RuntimeError) as caught:
                error = caught
                told = isinstance(error, OSError) and error.errno in kinds and str(folder / name) in str(error)
        after = (folder / name).read_bytes() if (folder / name).exists() else b""
        left = [path.name for path in folder.iterdir() if path.name.endswith(".part")]
        tally.check(told and after == before and not left, f"{name}: {error!r}, {len(after)} bytes, {left}")


def _full_disk(folder: Path) -> Row:
    tally = Tally("a full disk: a clear error, the old file untouched")
    kinds = (errno.ENOSPC, errno.EFBIG)
    (folder / "limited").mkdir()
    for size in (0, 1000, 5000):
        _fails_well(tally, folder / "limited", kinds, _Again(lambda size=size: _small_files(size)))
    if os.geteuid() == 0:
        with _small_disk(folder / "disk", "3M") as disk:
            _fails_well(tally, disk, kinds, _Again(lambda: _filled(disk)))
    return tally.row()


class _Again(contextlib.AbstractContextManager):
    """A context that can be entered repeatedly."""

    def __init__(self, make: Callable[[], contextlib.AbstractContextManager]) -> None:
        self.make = make

    def __enter__(self) -> None:
        self.inner = self.make()
        self.inner.__enter__()

    def __exit__(self, *how: object) -> None:
        self.inner.__exit__(*how)  # type: ignore[arg-type]


@contextlib.contextmanager
def _filled(disk: Path) -> Iterator[None]:
    """Fill a disk up to the last few bytes."""
    ballast = disk / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while file.write(bytes(2**12)):
            pass
    try:
        yield
    finally:
        ballast.unlink()


@contextlib.contextmanager
def _without_writing(folder: Path) -> Iterator[None]:
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)


def _read_only(folder: Path) -> Row:
    tally = Tally("a read-only folder: a clear error, the old file untouched")
    if os.geteuid() == 0:  # root may write anywhere, so the disk itself must be read-only
        with _small_disk(folder / "read-only", "20M") as disk:
            _fails_well(tally, disk, (errno.EROFS,), _Again(lambda: _without_writing(disk)))
    else:
        (folder / "read-only").mkdir()
        _fails_well(tally, folder / "read-only", (errno.EACCES,), _Again(lambda: _no_permission(folder / "read-only")))
    return tally.row()


@contextlib.contextmanager
def _no_permission(folder: Path) -> Iterator[None]:
    folder.chmod(0o555)
    try:
        yield
    finally:
        folder.chmod(0o755)


# Homes, cores, many processes --------------------------------------------------------------------------

HOMELESS = """
import sys
import numpy as np
import pandas as pd
from sklearn.datasets import load_wine
import kernelwright as kw
from kernelwright import reports, tables
from kernelwright.numerics import distances
assert kw.__file__.startswith(sys.argv[1]), kw.__file__
frame = load_wine(as_frame=True).frame
model = tables.TabularModel.fit(tables.TrainingTable.of(tables.as_table(frame), "target"))
assert "<svg" in reports.model_report(model) or "<img" in reports.model_report(model)
assert distances._compile() is not None
"""


def _no_home(folder: Path) -> Row:
    """Fit, compile and draw without a home folder or caches, from a read-only package."""
    tally = Tally("no home folder and a package that is read-only")
    lacking = {"HOME": "/proc/nowhere", "PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"}
    with _small_disk(folder / "package", "20M") as disk:
        shutil.copytree(ROOT / "src", disk / "src", ignore=shutil.ignore_patterns("__pycache__"))
        protect = _without_writing(disk) if os.geteuid() == 0 else contextlib.nullcontext()
        with protect:
            code = HOMELESS.replace("sys.argv[1]", repr(str(disk)))
            for environment in (lacking, {k: v for k, v in lacking.items() if k != "HOME"}):
                environment = environment | {"PYTHONPATH": str(disk / "src")}
                done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
                tally.check(done.returncode == 0, done.stderr[-1000:])
    return tally.row()


ANSWERS = """
import warnings
warnings.simplefilter("ignore")
import kernelwright as kw
from robustness.faults import blobs
X, y = blobs(700)
print(kw.EmbeddingClassifier(random_state=0).fit(X, y).predict_proba(X[:50]).tolist())
"""


def _one_core() -> Row:
    """Check that one core gives the same answers as all."""
    tally = Tally("one core: the same answers as on all")
    if shutil.which("taskset"):
        free = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
        one, all_ = (np.array(json.loads(python(ANSWERS, before=b, env=dict(free)).stdout)) for b in (ONE, []))
        tally.check(np.allclose(one, all_, atol=1e-6), np.abs(one - all_).max())
    return tally.row()


ONE = ["taskset", "-c", "0"]


def _fit_and_save(folder: str, number: int) -> None:
    warnings.simplefilter("ignore")
    X, y = blobs(60)
    model = kw.EmbeddingClassifier(kw.kernels.Gaussian(1.0 + number), learn=None).fit(X, y)
    for _ in range(20):
        kw.save(model, Path(folder) / "model.kw")
        kw.load(Path(folder) / "model.kw")
    tasks = [Task("row", "column", trial, _one_number, (trial,)) for trial in range(10)]
    run(Experiment("toy", "A toy", lambda quick: tasks), Path(folder))


def _one_number(trial: int) -> dict[str, float]:
    return {"accuracy": float(trial), "error": 1.0}


def _many_writers(folder: Path, n: int) -> Row:
    """Write the same files from many processes: all finish, every file is whole, each result is there once."""
    tally = Tally("many processes writing to one folder")
    place = folder / "shared"
    place.mkdir()
    with ProcessPoolExecutor(n, mp_context=get_context("fork")) as pool:
        for future in [pool.submit(_fit_and_save, str(place), number) for number in range(n)]:
            error = future.exception()
            tally.check(error is None, error)
    kw.load(place / "model.kw")
    found = sorted((r.trial, r.measure) for r in read_results(place / "toy.csv"))
    whole = found == [(trial, measure) for trial in range(10) for measure in ("accuracy", "error")]
    names = sorted(path.name for path in place.iterdir())
    tally.check(whole and names == ["model.kw", "toy.csv"], names)
    return tally.row()
