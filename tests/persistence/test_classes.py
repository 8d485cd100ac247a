import subprocess
import sys

import pytest

CODE = """
import sys
from kernelwright.persistence.classes import saved_classes
names = {declared.cls.__module__ for declared in saved_classes()}
assert "kernelwright.research.baselines.alignment" in names
above = ("kernelwright.cli", "kernelwright.reports", "kernelwright.research.experiments")
print([name for name in sys.modules if name.startswith(tuple(f"{package}." for package in above))])
"""


@pytest.mark.slow
def test_looking_for_saved_classes_imports_no_package_without_pieces_of_models():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
