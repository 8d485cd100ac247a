import subprocess
import sys

import pytest

CODE = """
import sys, warnings
import torch, sklearn.calibration, sklearn.datasets, sklearn.model_selection, sklearn.svm
# scikit-learn adds warning filters of its own, so it is loaded first.
def state():
    return torch.get_default_dtype(), torch.get_num_threads(), torch.initial_seed(), list(warnings.filters)
before, loaded = state(), set(sys.modules)
import kernelwright
for name in kernelwright.__all__:
    getattr(kernelwright, name)
assert state() == before
heavy = {"matplotlib", "pandas", "numba", "rich", "typer", "jinja2", "dask"}
print(sorted(heavy & (set(sys.modules) - loaded)))
"""


@pytest.mark.slow
def test_importing_the_package_loads_nothing_heavy_and_changes_no_global_state():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def seconds(code):
    """CPU seconds that code takes in a fresh Python."""
    timed = f"import time\nstarted = time.process_time()\n{code}\nprint(time.process_time() - started)"
    return float(subprocess.run([sys.executable, "-c", timed], capture_output=True, text=True, check=True).stdout)


def test_importing_the_package_takes_less_than_two_seconds():
    assert seconds("import kernelwright") < 2.0


LIBRARIES = (
    "import torch, sklearn.calibration, sklearn.datasets, sklearn.ensemble, sklearn.model_selection, sklearn.svm"
)


@pytest.mark.slow
def test_its_names_add_less_than_two_seconds_to_torch_and_scikit_learn():
    names = "import kernelwright\nfor name in kernelwright.__all__: getattr(kernelwright, name)"
    assert seconds(f"{LIBRARIES}\nstarted = time.process_time()\n{names}") < 2.0


@pytest.mark.slow
def test_names_are_loaded_when_they_are_used():
    code = """
import sys, kernelwright
assert "torch" not in sys.modules
assert {"EmbeddingClassifier", "kernels", "load"} <= set(dir(kernelwright))
assert kernelwright.tables.as_table and kernelwright.kernels.Gaussian
assert kernelwright.EmbeddingClassifier is kernelwright.estimators.EmbeddingClassifier
assert kernelwright.learning.Rademacher and kernelwright.solvers.Landmarks
assert kernelwright.research.baselines.GridSearchSVC
assert not hasattr(kernelwright, "nothing") and not hasattr(kernelwright, "baselines")
from kernelwright import *
assert save and PredictionSets
"""
    subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
