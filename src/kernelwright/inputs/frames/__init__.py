"""Data frames as people have them: the kind of each column, how its cells are read, and the codes that models see.

Nothing is imported here: reading a file, or rejecting it, needs neither torch nor scikit-learn.
"""
