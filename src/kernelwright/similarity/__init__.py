"""Similarity matrices: kernel alignment and indefinite spectra."""
