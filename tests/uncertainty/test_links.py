"""The link from outputs and support to probabilities, fitted to leave-one-out outputs."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from kernelwright.embedding.training_set import TrainingSet
from kernelwright.uncertainty.calibration import drawn_to_prior, fit_map, fit_shifted_power, trust_in
from kernelwright.uncertainty.links import LeftOutOutputs, fit_link

N, M = 120, 3
FREQUENCIES = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)


def left_out(prior: bool = True, n: int = N) -> LeftOutOutputs:
    rng = np.random.default_rng(0)
    labels = rng.choice(M, n, p=FREQUENCIES.numpy())
    outputs = torch.from_numpy(0.5 * np.eye(M)[labels] + rng.normal(0.15, 0.2, (n, M)))
    rows = TrainingSet.of(
        outputs,
        torch.from_numpy(np.eye(M)[labels]),
        weights=torch.from_numpy(rng.uniform(0.5, 2.0, n)),
        prior=FREQUENCIES if prior else None,
    )
    return LeftOutOutputs(outputs, rows, torch.from_numpy(rng.uniform(0.0, 2.0, n)))


@pytest.mark.parametrize("how", ["power", "softmax"])
@pytest.mark.parametrize("prior", [True, False], ids=["prior", "no-prior"])
def test_a_link_is_a_fitted_map_drawn_to_the_frequencies(how, prior):
    given = left_out(prior)
    rows, kept = given.rows, FREQUENCIES if prior else None
    found = fit_link(how, given, FREQUENCIES, n=N)
    expected = fit_map(how, given.outputs, rows.targets, rows.weights, kept)
    untrusted = drawn_to_prior(expected.log(given.outputs), given.support, FREQUENCIES)
    trust = trust_in(untrusted, rows.targets, rows.weights, N)
    assert found.link.trust == pytest.approx(trust)
    assert 0.9 < trust <= 1.0
    drawn = drawn_to_prior(expected.log(given.outputs), trust * given.support.clamp(max=1.0), FREQUENCIES)
    torch.testing.assert_close(found.log_p, drawn)
    torch.testing.assert_close(found.link(given.outputs, given.support), found.log_p)
    assert torch.equal(found.shift, torch.zeros(M, dtype=torch.float64))


def test_a_shifted_power_moves_the_prior_of_the_outputs():
    given = left_out()
    rows = given.rows
    found = fit_link("power", given, FREQUENCIES, n=N, shifts=True)
    _, shift = fit_shifted_power(given.outputs, rows.targets, rows.weights, FREQUENCIES)
    assert torch.equal(found.shift, shift)
    assert float(shift.abs().max()) > 0
    torch.testing.assert_close(found.link(given.outputs + shift, given.support), found.log_p)


def test_few_rows_are_trusted_less():
    trusts = [fit_link("power", left_out(n=n), FREQUENCIES, n=n).link.trust for n in (8, 20, 100)]
    assert trusts == sorted(trusts)
    assert trusts[0] < 0.9


def test_a_calibrator_of_ones_own_is_trusted_as_it_is():
    found = fit_link(LogisticRegression(), left_out(), FREQUENCIES, n=N)
    assert found.link.trust == 1.0


def test_the_clip_stays_equation_6():
    given = left_out()
    found = fit_link("clip", given, FREQUENCIES, n=N)
    positive = given.outputs.clamp(min=0.0)
    torch.testing.assert_close(found.log_p.exp(), positive / positive.sum(1, keepdim=True))
