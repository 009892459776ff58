"""The calls of `aio.Admin`, in a class for each subject; made of `admin/calls`."""
