import numpy as np
import pytest
import torch

from kernelwright.embedding.target_space import TargetSpace
from kernelwright.inputs.any_targets import DistinctTargets
from kernelwright.kernels import Gaussian, KroneckerDelta, Linear, Spectrum

RNG = np.random.default_rng(0)
NUMBERS = np.array([2.0, -1.0, 2.0, 5.0, 2.0, -1.0])
LABELS = np.array(["b", "a", "b", "c"])


def space(Y, kernel=None):
    return TargetSpace.of(DistinctTargets.of(np.asarray(Y)), kernel)


def test_default_kernels_are_those_of_the_kind():
    numbers, labels, vectors = space(NUMBERS), space(LABELS), space(RNG.normal(size=(5, 2)))
    assert (numbers.kind, labels.kind, vectors.kind) == ("numbers", "labels", "vectors")
    assert isinstance(numbers.kernel, Gaussian)
    assert isinstance(labels.kernel, KroneckerDelta)
    torch.testing.assert_close(labels.gram(), torch.eye(3, dtype=torch.float64))
    np.testing.assert_allclose(numbers.scaler.mean_, NUMBERS.mean())  # of the rows, not of the distinct targets


def test_a_given_kernel_is_copied_and_sees_targets_as_they_are():
    given = Gaussian(1.5)
    found = space(NUMBERS, given)
    assert found.kernel is not given
    values = np.array([-1.0, 2.0, 5.0])
    np.testing.assert_allclose(found.gram(), np.exp(-((values[:, None] - values) ** 2) / (2 * 1.5**2)), rtol=1e-12)


def test_the_marginal_has_the_shares_of_the_rows():
    torch.testing.assert_close(space(NUMBERS).marginal(), torch.tensor([2.0, 3.0, 1.0]).double() / 6)


@pytest.mark.parametrize("kernel", [Gaussian(2.0), 100.0 * Gaussian(2.0)])
def test_features_give_the_kernel_in_units_of_its_mean_diagonal(kernel):
    found = space(NUMBERS, kernel)
    features, L = found.features(), found.gram()
    torch.testing.assert_close(features.unit * features.table @ features.table.T, L, rtol=1e-6, atol=1e-8)
    rows = features.table[torch.from_numpy(DistinctTargets.of(NUMBERS).number)]
    assert float((rows * rows).sum(1).mean()) == pytest.approx(1.0)


def test_a_kernel_that_is_zero_everywhere_has_a_unit():
    assert space(np.zeros(4), Linear()).features().unit == 1.0


def test_unknown_labels_are_far_from_all_others():
    found = space(LABELS)
    new = found.points(np.array(["a", "z"]))
    np.testing.assert_array_equal(found.kernel.forward(new, found.points(found.values)), [[1, 0, 0], [0, 0, 0]])


@pytest.mark.parametrize("kernel", [Gaussian(0.7), 0.5 * Linear() + Gaussian(2.0)])
def test_squared_distances_are_those_in_the_feature_space(kernel):
    found = space(NUMBERS, kernel)
    masses = torch.from_numpy(RNG.normal(size=(4, 3)))
    Y = RNG.normal(size=4)
    everything = np.append(found.values, Y)
    L = found.kernel.forward(found.points(everything)).detach()
    expected = []
    for row in range(4):
        difference = torch.zeros(7, dtype=torch.float64)
        difference[:3], difference[3 + row] = -masses[row], 1.0
        expected.append(float(difference @ L @ difference))
    np.testing.assert_allclose(found.squared_distances(masses, Y, found.gram()), expected, rtol=1e-10)


@pytest.mark.parametrize(("Y", "kernel"), [(LABELS, Gaussian()), (NUMBERS, Spectrum(2))])
def test_a_kernel_of_another_kind_is_refused(Y, kernel):
    with pytest.raises(ValueError, match="does not fit the targets"):
        space(Y, kernel)


@pytest.mark.parametrize(
    ("Y", "sentence"),
    [
        (LABELS, "expects numbers. Got labels"),
        (np.ones((3, 2)), "expects numbers. Got vectors of length 2"),
    ],
)
def test_targets_of_another_kind_are_refused(Y, sentence):
    with pytest.raises(ValueError, match=sentence):
        space(NUMBERS).refuse_others(Y)
