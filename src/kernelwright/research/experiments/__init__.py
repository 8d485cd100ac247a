"""Reproduced tables and figures of the papers; published values are in ``published/``."""
