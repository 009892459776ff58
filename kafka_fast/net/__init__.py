"""The only layer that calls the operating system: sockets, clocks, threads. Private."""
