"""The commands of an operator, over `kafka_fast.Admin`: a module, or a room, for each noun."""
