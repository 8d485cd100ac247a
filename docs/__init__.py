"""The pages of the documentation, and the script that fills their tables."""
