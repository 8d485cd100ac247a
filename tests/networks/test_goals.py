"""The meaning of ``learn`` for a network."""

from kernelwright import learning
from kernelwright.networks.goals import batch_objective, network_method
from kernelwright.objectives import ClippedLogLoss, HeldOutObjective, RademacherObjective
from kernelwright.objectives.splits import LastRows


def test_a_network_decides_by_the_rows_of_a_batch():
    assert network_method("auto", "model") is None
    loss = ClippedLogLoss(0.1)
    assert batch_objective(None, few_rows=False) == RademacherObjective("4e/n", loss)
    assert batch_objective(None, few_rows=True) == HeldOutObjective("4e/n", loss, folds=LastRows(0.5))


def test_objects_and_words_say_what_they_say_elsewhere():
    loss = ClippedLogLoss(1e-15)
    assert batch_objective(network_method("rademacher", "model"), few_rows=True) == RademacherObjective("4e/n", loss)
    held_out = HeldOutObjective("1/n", loss, folds=LastRows(0.5))
    assert batch_objective(network_method("held-out", "model"), few_rows=False) == held_out
    method = network_method(learning.HeldOut(0.3, epsilon=0.2, share=0.25), "model")
    asked = HeldOutObjective(0.3, ClippedLogLoss(0.2), folds=LastRows(0.25))
    assert batch_objective(method, few_rows=False) == asked
