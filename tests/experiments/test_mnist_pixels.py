"""Digits from pixels, at a size that runs in seconds."""

import numpy as np
import pytest

from kernelwright.experiments import mnist_pixels


def test_few_images_are_read_well_and_the_picture_shows_the_length_scales(data_folder):
    assert (data_folder / "mnist.npz").exists()
    seen = []
    (outcome,) = mnist_pixels.run([200], progress=seen.append)
    assert seen == [outcome]
    assert outcome.common > 80
    assert outcome.single > 75
    assert outcome.lengthscales.shape == (784,)
    assert np.unique(outcome.lengthscales).size > 10
    assert mnist_pixels.rows_of([outcome])[0]["training images"] == 200
    assert mnist_pixels.picture(outcome).png.startswith(b"\x89PNG")


@pytest.mark.parametrize(("accuracy", "reached"), [(89.9, False), (90.0, True)])
def test_the_goal_is_for_the_common_length_scale(accuracy, reached):
    outcome = mnist_pixels.Outcome(500, accuracy, 99.0, 1.0, np.ones(784))
    assert outcome.reached is reached
