"""Settings of all tests: small and repeatable random examples, and arrays that many tests share."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "kernelwright",
    max_examples=25,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("kernelwright")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def data_folder() -> Path:
    """The folder of data sets; a test that needs it is skipped, with the reason, where there is none."""
    folder = os.environ.get("KERNELWRIGHT_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip(f"needs the data sets: KERNELWRIGHT_DATA is {folder!r}, which is no folder")
    return Path(folder)
