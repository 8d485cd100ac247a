import subprocess
import sys

import numpy as np
import pytest

from tools.processes import child_cpu_seconds, cpu_seconds, peak_of


def test_cpu_seconds_count_work():
    before = cpu_seconds()
    sum(range(2_000_000))
    assert cpu_seconds() > before


def test_cpu_seconds_of_children_count_their_work_and_not_ours():
    before = child_cpu_seconds()
    sum(range(2_000_000))
    assert child_cpu_seconds() == before
    subprocess.run([sys.executable, "-c", "sum(range(2_000_000))"], check=True)
    assert child_cpu_seconds() > before


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_peak_is_that_of_the_work_alone():
    np.ones(2**24)  # a higher peak before does not count
    assert 0.9 * 2**25 < peak_of(lambda: np.ones(2**22)) < 2**26  # the system counts to within some pages
