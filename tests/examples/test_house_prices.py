"""The example runs, and its text is correct."""

import numpy as np
import pytest

from kernelwright.reports import FanDisplay
from tests.examples.loading import load


@pytest.mark.slow
def test_distributions_are_better_and_intervals_cover(data_folder, tmp_path, capsys):
    if not (data_folder / "tables" / "ames.csv").is_file():
        pytest.skip("needs tables/ames.csv in the data folder")
    scores = load("house_prices").main(600, tmp_path / "fan.png")
    ours = scores["kernelwright"]
    assert 0.83 < ours["coverage"] < 0.97
    assert all(ours["CRPS"] < scores[rival]["CRPS"] for rival in ("random forest", "gradient boosting"))
    assert (tmp_path / "fan.png").stat().st_size > 1000
    assert "above 200,000 with probability" in capsys.readouterr().out


def test_scores_of_quantiles_are_close_to_the_crps(rng):
    """Of a standard normal distribution, the CRPS at its centre is (sqrt(2) - 1) / sqrt(pi)."""
    from scipy.stats import norm

    example = load("house_prices")
    quantiles = np.tile(norm.ppf(example.LEVELS), (2, 1))
    found = example.scores(np.array([0.0, 1e-9]), np.zeros(2), quantiles)
    assert found["CRPS"] == pytest.approx((np.sqrt(2) - 1) / np.sqrt(np.pi), rel=0.05)
    assert found["coverage"] == 1.0
    assert found["width"] == pytest.approx(2 * 1.645, rel=1e-3)


def test_without_the_table_it_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELWRIGHT_DATA", str(tmp_path))
    with pytest.raises(SystemExit, match="Set KERNELWRIGHT_DATA"):
        load("house_prices").houses(10)


def test_a_fan_goes_through_a_pipeline(rng):
    import pandas as pd

    from kernelwright import EmbeddingRegressor

    frame = pd.DataFrame({"area": rng.uniform(50, 200, 60), "town": np.resize(["Ulm", "Bonn"], 60)})
    prices = 1000 * frame["area"] * np.where(frame["town"] == "Ulm", 1.0, 1.5)
    model = load("house_prices").with_regressor(EmbeddingRegressor(random_state=0)).fit(frame, prices)
    fan = FanDisplay.from_estimator(model, frame, "town")
    assert dict(zip(fan.values, fan.quantiles[:, 2], strict=True))["Bonn"] > 1.3 * fan.quantiles[:, 2].min()
