"""What a query reads: options become partitions, bounds, ranges, micro-batches. On the driver."""
