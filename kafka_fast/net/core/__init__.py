"""What every client consists of: both planes, and the messages between them."""
