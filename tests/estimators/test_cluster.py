"""A real cluster of two processes: the same answers, also when a worker dies; clear errors; nothing left running."""

import os
import signal
import threading
import time
from contextlib import contextmanager

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from kernelwright import EmbeddingClassifier, EmbeddingNetworkClassifier, EmbeddingRegressor, HyperKernelRidge, datasets
from kernelwright.errors import WorkerLostError
from kernelwright.features import RandomFourier
from kernelwright.hyper import LandmarkPairs, Partition
from kernelwright.inputs import blocks, dask_buckets, dask_work
from kernelwright.kernels import Gaussian
from kernelwright.networks import Training
from kernelwright.research.experiments.runner import Experiment, Task, run
from kernelwright.solvers import Tree

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.slow

LIMIT = 2**30  # bytes a worker may use


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit=LIMIT, dashboard_address=None, silence_logs="CRITICAL"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def covtype(data_folder):
    X, y = datasets.load("covtype")
    some = np.random.default_rng(0).permutation(len(X))[:20_000]
    return (X[some] - X.mean(0)) / (X.std(0) + 1e-9), y[some]


def model():
    return EmbeddingClassifier(features=RandomFourier(200), random_state=0)


class Watched:
    """Records the largest memory of any worker, as the dashboard would show it."""

    def __init__(self, client):
        self.client, self.stop, self.largest = client, threading.Event(), 0

    def __enter__(self):
        self.thread = threading.Thread(target=self.look)
        self.thread.start()
        return self

    def look(self):
        while not self.stop.wait(0.2):
            workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
            self.largest = max([self.largest, *(worker["metrics"]["memory"] for worker in workers)])

    def __exit__(self, *error):
        self.stop.set()
        self.thread.join()


def test_covtype_from_chunks_is_the_same_as_from_an_array(client, covtype, monkeypatch):
    monkeypatch.setattr(blocks, "GATHERED_ROWS", 5000)
    X, y = covtype
    here = model().fit(X, y)
    with Watched(client) as watched:
        there = model().fit(da.from_array(X, chunks=((2_000, 7_000, 11_000), (30, 24))), da.from_array(y, chunks=9000))
        lazy = there.predict_proba(da.from_array(X, chunks=(3000, 54))[:8_000])
        answer = lazy.compute()
    assert there.solver_ == "explicit"
    np.testing.assert_allclose(there.coefficients_, here.coefficients_, atol=1e-8 * np.abs(here.coefficients_).max())
    np.testing.assert_allclose(answer, here.predict_proba(X[:8_000]), atol=1e-8)
    assert 0 < watched.largest < LIMIT


def test_numbers_from_chunks_are_the_same_as_from_an_array(client, monkeypatch):
    monkeypatch.setattr(blocks, "GATHERED_ROWS", 2000)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 4))
    y = X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=20_000)
    model = EmbeddingRegressor(features=RandomFourier(100), random_state=0)
    here = clone(model).fit(X, y)
    there = clone(model).fit(da.from_array(X, chunks=(3000, 4)), da.from_array(y, chunks=7000))
    lazy = there.quantile(da.from_array(X, chunks=(3000, 4))[:5000], [0.1, 0.5, 0.9])
    np.testing.assert_allclose(lazy.compute(), here.quantile(X[:5000], [0.1, 0.5, 0.9]), atol=1e-6)
    both = there.predict(da.from_array(X, chunks=(3000, 4))[:5000], return_std=True)
    np.testing.assert_allclose(da.compute(*both), here.predict(X[:5000], return_std=True), atol=1e-6)
    assert here.score(X, y) > 0.8


def slow(block, seconds):
    time.sleep(seconds)
    return block


def many_chunks(X, seconds=0.1):
    """Make slow chunks, so that something can happen during the computation."""
    return da.from_array(X, chunks=(1000, -1)).map_blocks(slow, seconds, dtype=X.dtype)


def wait_for_sums(client):
    """Wait until the workers have finished some chunks but not all."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        tasks = [key for keys in client.has_what().values() for key in keys]
        if sum("on_one_thread" in str(key) for key in tasks) >= 2:
            return
        time.sleep(0.02)
    raise AssertionError("No chunk was ever summed up.")


@pytest.fixture
def problem(monkeypatch):
    monkeypatch.setattr(blocks, "GATHERED_ROWS", 500)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 4))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def small_model(**how):
    return EmbeddingClassifier(features=RandomFourier(50), random_state=0, **how)


def test_a_worker_that_is_killed_in_the_middle_changes_nothing(client, problem):
    X, y = problem
    expected = small_model(learn=None, ridge=0.01).fit(X, y)
    before = set(client.run(os.getpid).values())
    found = {}
    fit = threading.Thread(
        target=lambda: found.update(model=small_model(learn=None, ridge=0.01).fit(many_chunks(X), y))
    )
    fit.start()
    wait_for_sums(client)
    victim = min(before)
    os.kill(victim, signal.SIGKILL)
    assert fit.is_alive()
    fit.join(120)
    assert "model" in found
    client.wait_for_workers(2, timeout=60)
    assert victim not in client.run(os.getpid).values()
    np.testing.assert_allclose(found["model"].coefficients_, expected.coefficients_, atol=1e-8)
    np.testing.assert_allclose(found["model"].predict_proba(X), expected.predict_proba(X), atol=1e-8)


@contextmanager
def ctrl_c_after(wait):
    """Press Ctrl-C when ``wait`` returns. It interrupts this block only, however the block ends."""
    ended, usual = threading.Event(), signal.getsignal(signal.SIGINT)

    def interrupt(*_):
        if not ended.is_set():
            raise KeyboardInterrupt

    def press():
        wait()
        for _ in range(5):  # Python drops one that comes while an object is being deleted
            os.kill(os.getpid(), signal.SIGINT)
            if ended.wait(3):
                return

    pressing = threading.Thread(target=press)
    signal.signal(signal.SIGINT, interrupt)
    pressing.start()
    try:
        yield
    finally:
        ended.set()
        pressing.join()
        signal.signal(signal.SIGINT, usual)


def test_ctrl_c_stops_the_work_of_the_cluster(client, problem):
    X, y = problem
    with pytest.raises(KeyboardInterrupt), ctrl_c_after(lambda: wait_for_sums(client)):
        small_model(learn=None, ridge=0.01).fit(many_chunks(X, 1.0), y)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and any(client.processing().values()):
        time.sleep(0.1)
    assert not any(client.processing().values())
    assert not any(client.has_what().values())
    assert client.submit(sum, [1, 2]).result(timeout=20) == 3


def test_a_worker_short_of_memory_names_the_setting_to_change(problem):
    import dask

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, memory_limit="400MiB", dashboard_address=None, silence_logs="CRITICAL"
        ) as cluster,
        distributed.Client(cluster),
    ):
        X = da.random.default_rng(0).normal(size=(20_000_000, 4), chunks=(20_000_000, 4))
        y = (X[:, 0] > 0).astype(int)
        with pytest.raises(WorkerLostError, match=r"Use smaller chunks .* or raise memory_limit of the workers"):
            small_model(learn=None, ridge=0.01).fit(X, y)


# Leaves of a tree ------------------------------------------------------------------------------------------------


def tree_model(kind=EmbeddingClassifier):
    return kind(Gaussian(0.7), learn=None, ridge=1e-5, solver=Tree(300, trees=2), random_state=0)


def here(model, X, y):
    """Fit a model to chunks in this process."""
    with dask.config.set(scheduler="synchronous"):
        return model.fit(da.from_array(X, chunks=(5000, -1)), y)


def wait_for_buckets(client):
    """Wait until some buckets are together."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if any("_together" in str(key) for keys in client.has_what().values() for key in keys):
            return
        time.sleep(0.02)
    raise AssertionError("No bucket ever came together.")


@pytest.mark.parametrize("kind", [EmbeddingClassifier, EmbeddingRegressor])
def test_trees_are_the_same_as_in_one_process_also_if_a_worker_is_killed(client, problem, kind, monkeypatch):
    monkeypatch.setattr(dask_buckets, "GROUP_BYTES", 2**16)
    X, y = problem[0][:8000], problem[1][:8000]
    y = y if kind is EmbeddingClassifier else y + np.sin(X[:, 2])
    expected, found = here(tree_model(kind), X, y), {}
    before = set(client.run(os.getpid).values())
    fit = threading.Thread(target=lambda: found.update(model=tree_model(kind).fit(many_chunks(X), y)))
    fit.start()
    wait_for_buckets(client)
    os.kill(min(before), signal.SIGKILL)
    fit.join(120)
    there = found["model"]
    client.wait_for_workers(2, timeout=60)
    assert there.solver_ == "tree"
    np.testing.assert_allclose(there.coefficients_, expected.coefficients_, atol=1e-6)
    lazy = (there.predict_proba if kind is EmbeddingClassifier else there.predict)(many_chunks(X))
    answers = (expected.predict_proba if kind is EmbeddingClassifier else expected.predict)(X)
    np.testing.assert_allclose(lazy.compute(), answers, atol=1e-6)


def test_a_large_model_is_on_every_worker_before_predictions_begin(client, problem, monkeypatch):
    monkeypatch.setattr(dask_work, "LARGE", 100)
    X, y = problem[0][:3000], problem[1][:3000]
    model = small_model(learn=None, ridge=0.01).fit(X, y)
    lazy = model.predict_proba(da.from_array(X, chunks=(500, 4)))
    assert [len(held) for held in client.has_what().values()] == [1, 1]
    os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)
    np.testing.assert_allclose(lazy.compute(), model.predict_proba(X), atol=1e-12)
    client.wait_for_workers(2, timeout=60)


def test_ctrl_c_stops_leaves_too(client, problem, monkeypatch):
    monkeypatch.setattr(dask_buckets, "GROUP_BYTES", 2**16)
    X, y = problem
    with pytest.raises(KeyboardInterrupt), ctrl_c_after(lambda: wait_for_buckets(client)):
        tree_model().fit(many_chunks(X), y)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and (any(client.processing().values()) or any(client.has_what().values())):
        time.sleep(0.1)
    assert not any(client.processing().values())
    assert not any(client.has_what().values())


def test_networks(client, problem):
    X, y = problem
    network = EmbeddingNetworkClassifier(hidden=(16, 8), training=Training(max_epochs=3), random_state=0)
    one = network.fit(da.from_array(X, chunks=(5000, 4)), y).predict_proba(X[:100])
    other = network.fit(da.from_array(X, chunks=(12_345, 4)), y).predict_proba(X[:100])
    np.testing.assert_allclose(one, other, atol=1e-8)


# joblib ----------------------------------------------------------------------------------------------------------


def threads_inside(number):
    import torch
    from threadpoolctl import threadpool_info

    return {"threads": float(max([torch.get_num_threads(), *(pool["num_threads"] for pool in threadpool_info())]))}


@pytest.mark.parametrize("backend", ["loky", "dask", "threading"])
def test_joblib_spreads_what_can_be_spread(client, problem, backend, tmp_path):
    X, y = problem[0][:120], problem[1][:120]
    divided = HyperKernelRidge(solver=Partition(3, LandmarkPairs(5)), random_state=0)
    grid = EmbeddingClassifier(Gaussian(1.0), learn="cross-validation", random_state=0)
    here = divided.fit(X, y).predict(X), grid.fit(X, y).predict_proba(X), cross_val_score(grid, X, y, cv=3)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        there = divided.fit(X, y).predict(X), grid.fit(X, y).predict_proba(X), cross_val_score(grid, X, y, cv=3)
        tasks = [Task("row", "column", number, threads_inside, (number,)) for number in range(3)]
        results = run(Experiment("toy", "A toy", lambda quick: tasks), tmp_path, jobs=2)
    for one, other in zip(here, there, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)
    assert [result.value for result in results] == [1.0] * 3  # threads of each worker: none takes another's core
