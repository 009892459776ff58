"""What a consumer reads: positions, the records that it has, and how far its user is in them."""
