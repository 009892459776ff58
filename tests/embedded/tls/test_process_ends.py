"""Processes that end while links over TLS are open and busy, whatever becomes of OpenSSL meanwhile.

Scripts as in test_secure_process_life.py, which has the ends in the middle of a handshake.
"""

from __future__ import annotations

import json

import pytest

from kafka_fast.testing.secure_broker import SecureBroker
from tests.embedded.processes import run
from tests.embedded.tls.openssl import libcrypto_or_skip

PRELUDE = """
import json
config, way, libcrypto = json.loads(sys.argv[1])
os.environ["KAFKA_FAST_TLS"] = way
libc = ctypes.CDLL(None)
sends = itertools.count()
def last():
    until = next(sends) + 1000
    while next(sends) < until:
        time.sleep(0.001)
LAST = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p)(lambda status, _: last())
if libcrypto:
    NO_ATEXIT = 0x00080000
    init = ctypes.CDLL(libcrypto).OPENSSL_init_crypto
    init.argtypes = [ctypes.c_uint64, ctypes.c_void_p]
    assert init(NO_ATEXIT, None) == 1
warnings.simplefilter("ignore", ResourceWarning)
"""


@pytest.mark.parametrize("init", ["own", "the user's"])
@pytest.mark.parametrize(
    "ending",
    [
        "",
        "sys.exit(0)",
        # exit(3) runs OpenSSL's own clean-up beside our threads, and no Python.
        "libc.exit(0)",
        "end = threading.Thread(target=libc.exit, args=[0]); end.start(); end.join()",
    ],
)
def test_a_process_that_ends_with_busy_links(
    way: str, init: str, ending: str, secure_broker: SecureBroker
) -> None:
    libcrypto = libcrypto_or_skip() if init == "the user's" else None
    secure_broker.create_topic("t", 1)
    properties = secure_broker.client_properties("SCRAM-SHA-256")
    done = run(
        f"""
        if "libc" in {ending!r}:
            libc.on_exit(LAST, None)  # runs after what OpenSSL registers from here on
        producer = Producer(config)
        consumer = Consumer({{**config, "auto.offset.reset": "earliest"}})
        consumer.assign([TopicPartition("t", 0)])
        producer.send("t", b"0").result()
        def work():
            try:
                while True:
                    next(sends)
                    producer.send("t", bytes(1000))
                    consumer.poll(0)
            except (UsageError, WakeupError):
                pass  # they are closed, before the call or meanwhile
        while not consumer.poll(0.1): pass
        threading.Thread(target=work, daemon=True).start()
        {ending}
        """,
        json.dumps([properties, way, libcrypto]),
        prelude=PRELUDE,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
