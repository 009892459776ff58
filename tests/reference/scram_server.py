"""A SCRAM server, written from RFC 5802 and not from the client: plain loops, no expressions."""

from __future__ import annotations

import base64
import hashlib
import hmac


def hi(hash_name: str, text: bytes, salt: bytes, iterations: int) -> bytes:
    """Return Hi() of RFC 5802 §2.2, as it stands there."""
    block = hmac.new(text, salt + b"\0\0\0\1", hash_name).digest()
    result = int.from_bytes(block, "big")
    for _ in range(iterations - 1):
        block = hmac.new(text, block, hash_name).digest()
        result ^= int.from_bytes(block, "big")
    return result.to_bytes(len(block), "big")


class ScramServer:
    """One conversation with a client."""

    def __init__(
        self,
        hash_name: str,
        passwords: dict[str, str],
        *,
        salt: bytes = b"a salt of the server",
        iterations: int = 4096,
        nonce: str = "server-nonce",
    ) -> None:
        self.hash_name = hash_name
        self.passwords = passwords
        self.salt = salt
        self.iterations = iterations
        self.nonce = nonce
        self.user = ""
        self.extensions: list[str] = []
        self.client_first = b""
        self.server_first = b""

    def first(self, message: bytes) -> bytes:
        """Answer a client-first message."""
        assert message.startswith(b"n,,"), message
        self.client_first = message[3:]
        user, nonce, *self.extensions = self.client_first.decode().split(",")
        assert user.startswith("n=") and nonce.startswith("r="), message
        self.user = user[2:].replace("=2C", ",").replace("=3D", "=")
        self.nonce = nonce[2:] + self.nonce
        salt = base64.b64encode(self.salt).decode()
        self.server_first = f"r={self.nonce},s={salt},i={self.iterations}".encode()
        return self.server_first

    def final(self, message: bytes) -> bytes:
        """Answer a client-final message: with the server's signature, or an error."""
        unproven, _, proof = message.rpartition(b",p=")
        assert unproven == b"c=" + base64.b64encode(b"n,,") + b",r=" + self.nonce.encode()
        said = self.client_first + b"," + self.server_first + b"," + unproven
        password = self.passwords.get(self.user)
        if password is None:
            return b"e=unknown-user"
        salted = hi(self.hash_name, password.encode(), self.salt, self.iterations)
        client_key = hmac.new(salted, b"Client Key", self.hash_name).digest()
        stored_key = hashlib.new(self.hash_name, client_key).digest()
        signature = hmac.new(stored_key, said, self.hash_name).digest()
        proven = bytes(a ^ b for a, b in zip(base64.b64decode(proof), signature, strict=True))
        if hashlib.new(self.hash_name, proven).digest() != stored_key:
            return b"e=invalid-proof"
        server_key = hmac.new(salted, b"Server Key", self.hash_name).digest()
        return b"v=" + base64.b64encode(hmac.new(server_key, said, self.hash_name).digest())
