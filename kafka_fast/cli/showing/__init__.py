"""What the commands show: messages and progress on standard error, reports on standard output."""
