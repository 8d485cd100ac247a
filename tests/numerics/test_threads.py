"""Thread counts are restored; results are equal to the bit with the same number of threads, else to 1e-10."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import torch
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

from kernelwright.numerics.threads import ONE_THREAD_UP_TO, each_on_one_thread, n_threads, threads_for


def thread_counts() -> list[tuple[str, int]]:
    return sorted((pool["filepath"], pool["num_threads"]) for pool in threadpool_info())


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    with threadpool_limits(2):
        torch.set_num_threads(2)
        yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_small_problems_run_on_one_thread_and_the_count_is_restored():
    before = thread_counts()
    assert {count for _, count in before} == {2}
    with threads_for(10):
        assert {pool["num_threads"] for pool in ThreadpoolController().info()} == {1}
        assert torch.get_num_threads() == 1
    assert thread_counts() == before
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_large_problems_keep_the_threads_of_blas_alone():
    with threads_for(ONE_THREAD_UP_TO + 1):
        counts = {(pool["user_api"], pool["num_threads"]) for pool in threadpool_info()}
        assert counts == {("blas", 2), ("openmp", 1)}
        assert torch.get_num_threads() == 1


@pytest.mark.usefixtures("two_threads")
def test_the_count_is_restored_after_an_error():
    before = thread_counts()
    with pytest.raises(RuntimeError, match="inside"), threads_for(10):
        raise RuntimeError("inside")
    assert thread_counts() == before
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_nesting_restores_too():
    with threads_for(10):
        with threads_for(10):
            pass
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2


OVERLAPPING = """
import threading
from threadpoolctl import threadpool_info
from kernelwright.numerics.threads import threads_for

first_in, second_in, first_out = threading.Event(), threading.Event(), threading.Event()

def counts():
    return [library["num_threads"] for library in threadpool_info()]

def first():
    with threads_for(10):
        first_in.set()
        second_in.wait()
    first_out.set()

def second():
    first_in.wait()
    with threads_for(10):
        second_in.set()
        first_out.wait()

before = counts()
threads = [threading.Thread(target=caller) for caller in (first, second)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(counts() == before)
"""


def test_the_number_of_threads_is_as_before_however_callers_overlap():
    """A fit that begins during another, and ends after it, must not leave the other's limit behind."""
    two = os.environ | {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", OVERLAPPING], env=two, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


# Answers (docs/reliability.md) ---------------------------------------------------------------------------------


CODE = """
import sys
import numpy as np
import torch
from kernelwright import ConditionalMeanEmbedding, EmbeddingClassifier
from kernelwright.features import RandomFourier
from kernelwright.kernels import Gaussian
from kernelwright.numerics.threads import ONE_THREAD_UP_TO

X = np.random.default_rng(0).normal(size=(ONE_THREAD_UP_TO + 100, 6))  # so many that threads are used
y = (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] > 0).astype(int)
new = X[:200] + 0.1
given = {"learn": None, "ridge": 1e-4}
np.savez(
    sys.argv[1],
    threads=torch.get_num_threads(),
    few=EmbeddingClassifier(random_state=0).fit(X[:200], y[:200]).predict_proba(new),
    many=EmbeddingClassifier(Gaussian(1.0), **given).fit(X, y).predict_proba(new),
    features=EmbeddingClassifier(features=RandomFourier(200), random_state=0, **given).fit(X, y).predict_proba(new),
    mean=ConditionalMeanEmbedding(Gaussian(1.0), **given).fit(X, X[:, 0]).expectation(new),
)
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Return the results of a process with one thread, and of two processes with two threads each."""
    folder, found = tmp_path_factory.mktemp("threads"), {}
    for name, threads in (("one", "1"), ("two", "2"), ("two again", "2")):
        number = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads)
        number["OMP_WAIT_POLICY"] = "passive"  # other tests are waiting for the same cores
        path = folder / f"{name}.npz"
        subprocess.run([sys.executable, "-c", CODE, str(path)], check=True, env=os.environ | number)
        with np.load(path) as file:
            found[name] = dict(file)
    return found


@pytest.mark.slow
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two cores")
@pytest.mark.parametrize("kind", ["few", "many", "features", "mean"])
def test_answers_and_threads(answers, kind):
    assert [int(answers[name]["threads"]) for name in answers] == [1, 2, 2]
    np.testing.assert_array_equal(answers["two"][kind], answers["two again"][kind])
    np.testing.assert_allclose(answers["one"][kind], answers["two"][kind], rtol=0.0, atol=1e-10)


@pytest.mark.usefixtures("two_threads")
def test_items_are_shared_by_threads_that_each_compute_on_one():
    together, counts = threading.Barrier(2, timeout=20), []

    def work(item):
        together.wait()  # breaks unless two items are worked on at a time
        counts.append({pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"})
        return 2 * item, torch.get_num_threads(), torch.is_grad_enabled()

    before = thread_counts()
    assert each_on_one_thread(work, range(6)) == [(2 * item, 1, False) for item in range(6)]
    assert all(count == {1} for count in counts)
    assert thread_counts() == before
    assert torch.is_grad_enabled()


@pytest.mark.usefixtures("two_threads")
def test_items_are_done_in_turn_where_there_is_one_thread():
    with threads_for(10):
        assert n_threads() == 1
        mine = threading.current_thread()
        assert each_on_one_thread(lambda item: (item, threading.current_thread() is mine), "ab") == [
            ("a", True),
            ("b", True),
        ]
    assert n_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_an_error_in_a_thread_ends_the_work_and_restores_the_count():
    before, done = thread_counts(), []

    def work(item):
        if item == 0:
            raise RuntimeError("the first one")
        time.sleep(0.02)
        done.append(item)

    with pytest.raises(RuntimeError, match="the first one"):
        each_on_one_thread(work, range(200))
    assert len(done) < 100
    assert thread_counts() == before
