"""One module per API: the tables of its request and its response."""
