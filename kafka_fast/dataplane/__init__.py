"""The data plane: what moves records without the GIL. Private.

core     the transport: links, requests, heartbeats, commands down and events up, one turn
produce  the produce side: what `send` does, queues, Produce requests, how deliveries end
bulk     `send_many` and `send_table`: columns of many records into batches at once
fetch    the fetch side: Fetch requests and answers, chunks, and the records read from them
"""
