"""TEMP"""
MAX_SIZE=128<<20
def decompress(codec,data,*,max_size): raise NotImplementedError
def compress(codec,data,level=None): raise NotImplementedError
def codecs_available(): return {}
