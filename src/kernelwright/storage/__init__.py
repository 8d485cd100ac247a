"""What any room may need to write files: files that are never half-written, and classes that model files may hold."""
