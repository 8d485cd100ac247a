"""Tables and figures of the papers, recomputed; published values lie in ``published/``."""
