"""Writes .npy files with the standard library only, because the machine may lack numpy."""


def npy_header(kind, shape):
    """Returns the header of a .npy file. `kind`: the type of the elements as numpy writes it, such as "<f4"."""
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + header.ljust(117) + b"\n"
