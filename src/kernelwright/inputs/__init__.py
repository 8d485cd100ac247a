"""Checks of user input: arrays, labels, weights, groups, scaling, Dask collections."""
