"""What a user passes in, checked: arrays, labels, weights, groups, scaling, Dask collections."""
