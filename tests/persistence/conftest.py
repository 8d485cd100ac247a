from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import kernelwright as kw
from tests.persistence.models import MODELS


@pytest.fixture(autouse=True)
def quiet():
    """Silence the warnings that models give when they are fitted to tiny data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture
def model_file(tmp_path) -> Path:
    kw.save(MODELS["Krein SVC"].make(), tmp_path / "model.kw")
    return tmp_path / "model.kw"
