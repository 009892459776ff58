"""What runs in a worker process: tasks that write, and the clients that they share."""
