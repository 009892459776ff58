"""How callers wait: steps that yield what they wait for, and drivers for threads and tasks."""
