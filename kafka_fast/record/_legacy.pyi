from kafka_fast.record._reader import RecordBatch
from kafka_fast.record._records import Records

def read_messages(batch: RecordBatch, check_crc: bool, max_size: int) -> Records: ...
