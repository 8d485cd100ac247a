"""``python -m kernelwright``."""

from kernelwright.cli import main

main()
