"""The calls of `Admin`, in a class for each subject. `Admin` inherits all of them.

`kafka_fast.aio.admin` is made of these modules by `python -m tests.shells`.
"""
