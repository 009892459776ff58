"""Record batches: read and write. Part of the public wire API."""
