"""The sockets and threads round the embedded broker: all of it that does I/O."""
