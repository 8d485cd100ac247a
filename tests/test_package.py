import subprocess
import sys

CODE = """
import sys, warnings
import torch, sklearn.calibration, sklearn.datasets, sklearn.model_selection, sklearn.svm
# scikit-learn adds warning filters of its own, so it is loaded first.
def state():
    return torch.get_default_dtype(), torch.get_num_threads(), torch.initial_seed(), list(warnings.filters)
before, loaded = state(), set(sys.modules)
import kernelwright
assert state() == before
heavy = {"matplotlib", "pandas", "numba", "rich", "typer", "jinja2", "dask"}
print(sorted(heavy & (set(sys.modules) - loaded)))
"""


def test_importing_the_package_loads_nothing_heavy_and_changes_no_global_state():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


TIMED = """
import time
import torch, sklearn.calibration, sklearn.datasets, sklearn.ensemble, sklearn.model_selection, sklearn.svm
started = time.process_time()
import kernelwright
print(time.process_time() - started)
"""


def test_importing_the_package_adds_less_than_two_seconds_to_torch_and_scikit_learn():
    done = subprocess.run([sys.executable, "-c", TIMED], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 2.0
