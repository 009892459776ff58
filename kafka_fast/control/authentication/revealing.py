"""A secret's text at the moment of its use, so that no error of ours carries it.

An error keeps the frames it was raised in, and error trackers send their variables. So what is
wrong with a secret is found out first, and raised where nothing holds the secret any more.
"""

from __future__ import annotations

from kafka_fast.control.authentication.peer_text import as_told
from kafka_fast.errors import AuthenticationError, KafkaConnectionError
from kafka_fast.secret import Secret

__all__ = ["failed_function", "revealed"]


def revealed(secret: Secret, name: str) -> bytes:
    """Return a secret in UTF-8. Any thread that may block.

    Args:
        secret: a text, or a user's function.
        name: what it is, as "password".

    Raises:
        AuthenticationError: the user's function failed, or the text is none that can be sent.
        KafkaConnectionError: the user's function raised an OSError, which may pass.
    """
    failure: KafkaConnectionError
    try:
        return secret.reveal().encode()
    except UnicodeEncodeError:  # it has the secret in it, and must not be chained
        failure = AuthenticationError(f"needs a {name} that can be written in UTF-8")
    except Exception as error:
        if not isinstance(error, TypeError):
            raise failed_function(error, f"a {name}") from error
        # Secret's own: the value of the wrong type stands in its frame.
        failure = failed_function(error, f"a {name}")
    raise failure


def failed_function(error: BaseException, what: str) -> KafkaConnectionError:
    """Return what to raise if a user's function did not return `what`, as "a token"."""
    may_pass = isinstance(error, OSError) and not isinstance(error, AuthenticationError)
    kind = KafkaConnectionError if may_pass else AuthenticationError
    told = as_told(f"{type(error).__name__}: {error}")
    return kind(f"needs {what}, and the function that returns it raised {told}")
