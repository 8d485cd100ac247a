"""What reproduces the papers: rival methods (``baselines``) and the experiments themselves."""
