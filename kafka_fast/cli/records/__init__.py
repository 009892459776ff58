"""`kafka-fast produce` and `kafka-fast consume`: records between streams of bytes and topics."""
