"""The sub-commands of ``usher``, each in a module with the members of ``registry.Module``."""
