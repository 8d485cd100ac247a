import pytest
import torch

from kernelwright.experiments import networks


def test_published_networks_start_as_printed():
    model = networks.as_published(13, (16, 32, 8), seed=0)
    layers = [layer for layer in model.module if isinstance(layer, torch.nn.Linear)]
    assert [tuple(layer.weight.shape) for layer in layers] == [(16, 13), (32, 16), (8, 32)]
    assert all((layer.bias == 0.1).all() and layer.weight.abs().max() <= 0.2 for layer in layers)
    weights = torch.cat([layer.weight.detach().ravel() for layer in layers])
    assert float(weights.std()) == pytest.approx(0.088, rel=0.1)  # 0.1 before values beyond 0.2 are redrawn


def test_tables_and_cells():
    rows = [
        networks.Row("wine", "CEN-1", 90.0, 1.0),
        networks.Row("wine", "default", 98.0, 1.0),
        networks.Row("iris", "CEN-1", 95.0, 1.0),
        networks.Row("iris", "default", 96.0, 1.0),
    ]
    (cell,) = networks.cells(rows)
    assert (cell.data_set, cell.published_mean, cell.tolerance, cell.reached) == ("wine", 96.1, 5.0, False)
    assert networks.means(rows) == {"CEN-1": 92.5, "default": 97.0}
    assert networks.rows_of(rows)[1] == {"data": "iris", "CEN-1": "95.0 ± 1.0", "default": "96.0 ± 1.0"}


@pytest.mark.slow
def test_wine_comes_out_as_published():
    rows = networks.run(["wine"])
    assert [row.method for row in rows] == ["CEN-1", "CEN-2", "default"]
    assert all(cell.reached for cell in networks.cells(rows))
    assert rows[-1].mean > 95
