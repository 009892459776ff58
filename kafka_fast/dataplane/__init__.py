"""The data plane: what moves records without the GIL. Private.

core     the transport: links, requests, heartbeats, commands down and events up, one turn
produce  the produce side: queues, Produce requests, and what their answers mean
fetch    the fetch side: Fetch requests and answers, and the chunks that hold them
"""
