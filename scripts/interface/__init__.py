"""What scripts/generate writes, a module for each kind of file. Each writer takes the headers and returns text."""
