"""Learning a kernel function by regression over pairs of points, in a hyper-RKHS [Liu2021]_."""
