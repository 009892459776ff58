"""TLS: its contexts, handshakes and errors, natively or through a relay over Python's `ssl`.

    TlsSettings ─► make_connector ─┬─► NativeConnector ── _tls: OpenSSL, thread kf-tls
                                   └─► RelayConnector ─── ssl.SSLContext, thread kf-tls-relay

A connector takes a connected socket and, when its handshake is done, hands the data plane a link.
"""
