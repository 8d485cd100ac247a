import sys

import numpy as np
import pytest

from tools.processes import cpu_seconds, peak_of


def test_cpu_seconds_count_work():
    before = cpu_seconds()
    sum(range(2_000_000))
    assert cpu_seconds() > before


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_peak_is_that_of_the_work_alone():
    np.ones(2**24)  # a higher peak before does not count
    assert 0.9 * 2**25 < peak_of(lambda: np.ones(2**22)) < 2**26  # the system counts to within some pages
