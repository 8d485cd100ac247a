"""Settings of all tests: small and repeatable random examples, and arrays that many tests share."""

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
