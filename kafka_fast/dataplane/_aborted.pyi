"""No Python API: the module is cimported."""
