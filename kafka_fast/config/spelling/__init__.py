"""How names of properties may be written: other spellings, Java's constants, other clients'."""
