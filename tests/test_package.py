import inspect
import subprocess
import sys

import pytest

import kernelwright

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
    """Return the CPU seconds that code takes in a new Python process."""
    timed = f"import time\nstarted = time.process_time()\n{code}\nprint(time.process_time() - started)"
    return float(subprocess.run([sys.executable, "-c", timed], capture_output=True, text=True, check=True).stdout)


def test_importing_the_package_imports_no_other_module_of_it_and_no_library():
    code = (
        "import sys, kernelwright\nprint([n for n in sys.modules if n.startswith(('kernelwright.', 'numpy', 'torch'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_public_names_are_those_that_dir_shows():
    import kernelwright.tables  # which is not public, and an attribute from now on

    assert dir(kernelwright) == kernelwright.__all__ == sorted(kernelwright.__all__)
    assert hasattr(kernelwright, "tables")
    assert not {"tables", "import_module", "TYPE_CHECKING"} & set(dir(kernelwright))
    for name in kernelwright.__all__:
        assert getattr(kernelwright, name) is not None
    modules = {name for name in kernelwright.__all__ if inspect.ismodule(getattr(kernelwright, name))}
    assert modules == set(kernelwright.__all__) - set(kernelwright._MODULES)


@pytest.mark.parametrize(
    ("name", "suggested"),
    [("EmbedingClassifier", "EmbeddingClassifier"), ("solver", "solvers"), ("Krein", "KreinSVC"), ("qqq", None)],
)
def test_an_unknown_name_is_an_error_with_a_suggestion(name, suggested):
    with pytest.raises(AttributeError) as error:
        getattr(kernelwright, name)
    said = f". Did you mean {suggested!r}?" if suggested else ""
    assert str(error.value) == f"module 'kernelwright' has no attribute {name!r}{said}"


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
assert kernelwright.ModelFileError and kernelwright.load
assert "torch" not in sys.modules
assert kernelwright.kernels.Gaussian
assert "torch" in sys.modules
assert kernelwright.EmbeddingClassifier is kernelwright.estimators.EmbeddingClassifier
assert kernelwright.learning.Rademacher and kernelwright.solvers.Landmarks
assert kernelwright.research.baselines.GridSearchSVC
assert not hasattr(kernelwright, "nothing") and not hasattr(kernelwright, "baselines")
from kernelwright import *
assert save and PredictionSets
"""
    subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
