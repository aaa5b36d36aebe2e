#!/usr/bin/env python3
"""Decodes mutated JPEG, PNG and BMP files, a folder at a time. `dtrain check` with `on_error: skip` must end with 0 or
2, without a signal, a library's text, a hang, or more memory than an image may use.

    fuzz_pictures.py --program DTRAIN [--count N] [--seed S] [--long]

Exits with 0 if nothing is found. Otherwise keeps the file that causes the failure in a folder, prints the folder's
name, and exits with 1. Each file depends only on the seed and its number."""
import argparse
import base64
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

from patience import patiently

SECONDS = 60  # limit per folder
NOISE = ("std::", "vector::", "what():", "terminate called", "bad_alloc", "Sanitizer", "runtime error:")

CONFIG = """\
seed: 1
model: {{inputs: {{x: [16, 12, {channels}]}}, layers: [{{flatten: {{}}}}, {{dense: {{units: 1}}}}]}}
dataset: {{train: {{images: {{directory: all, resize: {resize}, on_error: skip}}}}}}
strategy: {{single: {{device: cpu:0}}}}
train: {{epochs: 1, batch_size: 16, loss: mean_squared_error, optimizer: sgd}}
"""
# This configuration reads the same files twice: as images and as masks.
MASKS = """\
seed: 1
model: {{inputs: {{x: [16, 12, {channels}]}}, layers: [{{conv2d: {{filters: 256, kernel_size: 1}}}}]}}
dataset: {{train: {{images: {{directory: all, resize: {resize}, on_error: skip, target_images: {{directory: all, classes: {classes}}}}}}}}}
strategy: {{single: {{device: cpu:0}}}}
train: {{epochs: 1, batch_size: 16, loss: {{sparse_categorical_crossentropy: {{from_logits: true}}}}, optimizer: sgd}}
"""

# Each of these images has 28x20 pixels. The first image is rotated according to its EXIF data.
BASELINE = (
    "/9j/4AAQSkZJRgABAQAAAQABAAD/4QAiRXhpZgAATU0AKgAAAAgAAQESAAMAAAABAAYAAAAAAAD/2wBDABQODxIPDRQSEBIXFRQYHjIhHhwcHj"
    "0sLiQySUBMS0dARkVQWnNiUFVtVkVGZIhlbXd7gYKBTmCNl4x9lnN+gXz/2wBDARUXFx4aHjshITt8U0ZTfHx8fHx8fHx8fHx8fHx8fHx8fHx8"
    "fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHz/wAARCAAUABwDASIAAhEBAxEB/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8"
    "QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdI"
    "SUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi4+"
    "Tl5ufo6erx8vP09fb3+Pn6/8QAHwEAAwEBAQEBAQEBAQAAAAAAAAECAwQFBgcICQoL/8QAtREAAgECBAQDBAcFBAQAAQJ3AAECAxEEBSExBhJB"
    "UQdhcRMiMoEIFEKRobHBCSMzUvAVYnLRChYkNOEl8RcYGRomJygpKjU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVmZ2hpanN0dXZ3eHl6goOEhY"
    "aHiImKkpOUlZaXmJmaoqOkpaanqKmqsrO0tba3uLm6wsPExcbHyMnK0tPU1dbX2Nna4uPk5ebn6Onq8vP09fb3+Pn6/9oADAMBAAIRAxEAPwC9"
    "DeLjrT5Ltcda56CR8d6ld3x3rz6OBU2eh9VSpl2W6XNItyuKxZ5mU45JqITTEdcfhXp/UaMNHq/I8SWFXMzet4EwOKmmhRYyQOaKKwwzai35Ht"
    "NvkM17ePPSmtGiYAUdKKK6qTapXR4k2+dn/9k="
)
PROGRESSIVE = (
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABQODxIPDRQSEBIXFRQYHjIhHhwcHj0sLiQySUBMS0dARkVQWnNiUFVtVkVGZIhlbXd7gYKBTmCNl4"
    "x9lnN+gXz/2wBDARUXFx4aHjshITt8U0ZTfHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHz/wgARCAAU"
    "ABwDASIAAhEBAxEB/8QAGQAAAgMBAAAAAAAAAAAAAAAAAAECAwQF/8QAFgEBAQEAAAAAAAAAAAAAAAAABAID/9oADAMBAAIQAxAAAAG98+R0Xr"
    "FFId8whuZBqL//xAAaEAEBAQADAQAAAAAAAAAAAAABAAIQERIh/9oACAEBAAEFAjc6nV6h4W7bJJ88l1f/xAAbEQACAQUAAAAAAAAAAAAAAAAA"
    "AQMTISIxQf/aAAgBAwEBPwGliOK5wez/xAAbEQACAQUAAAAAAAAAAAAAAAAAAgMBERMxMv/aAAgBAgEBPwFILmBKEeheT//EABQQAQAAAAAAAA"
    "AAAAAAAAAAADD/2gAIAQEABj8CT//EABcQAQEBAQAAAAAAAAAAAAAAAAEAEEH/2gAIAQEAAT8hKGGBNKzmYxkYQcv/2gAMAwEAAgADAAAAEFGw"
    "QP/EABYRAQEBAAAAAAAAAAAAAAAAAAEAEf/aAAgBAwEBPxDBA1K1u7//xAAZEQEBAAMBAAAAAAAAAAAAAAABABEhYTH/2gAIAQIBAT8QB3hdvJ"
    "onk0zL/8QAGhAAAwEBAQEAAAAAAAAAAAAAAAERMSFBgf/aAAgBAQABPxCDSLSwiJfSf0cTrYmLZ8I1wZGl0swhpJh//9k="
)
GRAY = (
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABQODxIPDRQSEBIXFRQYHjIhHhwcHj0sLiQySUBMS0dARkVQWnNiUFVtVkVGZIhlbXd7gYKBTmCNl4"
    "x9lnN+gXz/wAALCAAUABwBAREA/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIh"
    "MUEGE1FhByJxFDKBkaEII0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqDhI"
    "WGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/9oACAEBAAA/AL0N"
    "4uOtPku1x1qhLdLmkW5XFZ0Ej471K7vjvVGeZlOOSaiE0xHXH4VvW8CYHFTTQosZIHNZr28eelNaNEwAo6V//9k="
)
CMYK = (
    "/9j/7gAOQWRvYmUAZAAAAAAA/9sAQwAUDg8SDw0UEhASFxUUGB4yIR4cHB49LC4kMklATEtHQEZFUFpzYlBVbVZFRmSIZW13e4GCgU5gjZeMfZ"
    "ZzfoF8/8AAFAgAFAAcBEMRAE0RAFkRAEsRAP/EAB8AAAEFAQEBAQEBAAAAAAAAAAABAgMEBQYHCAkKC//EALUQAAIBAwMCBAMFBQQEAAABfQEC"
    "AwAEEQUSITFBBhNRYQcicRQygZGhCCNCscEVUtHwJDNicoIJChYXGBkaJSYnKCkqNDU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVmZ2hpanN0dX"
    "Z3eHl6g4SFhoeIiYqSk5SVlpeYmZqio6Slpqeoqaqys7S1tre4ubrCw8TFxsfIycrS09TV1tfY2drh4uPk5ebn6Onq8fLz9PX29/j5+v/aAA4E"
    "QwBNAFkASwAAPwDX0z7grW/tWP1FcjFHvrs6k1D/AFZo/tWP1FW4rHf2ori9S/1ho/tWP1FW4tH3/wANFVo/uUf2rH6irS+H8jOz9KK7nTPuCu"
    "I8+b3rKsI9+KKk1D/Vmjz5veulsLHfjiiuL1L/AFho8+b3qze31rpTiHyjcXOAfLU4C/7x7cc9D+tFVo/uUefN71Q+36xKS6SpEp6IkSkD8wT+"
    "tFdzpn3BW39kh/u1k6OoO3NFSah/qzR9kh/u11NzO9hos9zb4EqBQpIzjLAZ/WiuL1L/AFho+yQ/3axdHtojtytFVo/uUfZIf7tWdd1eXSLqK3"
    "t4IHRog5MiknOSOxHpRX//2Q=="
)


def png(bits, kind, interlace, draw):
    """Returns a PNG of 13 x 9 pixels of noise."""
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[kind]
    passes = [(0, 0, 1, 1)]
    if interlace:
        passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    raw = b""
    for x0, y0, dx, dy in passes:
        width, height = len(range(x0, 13, dx)), len(range(y0, 9, dy))
        if width:
            for _ in range(height):
                raw += bytes([draw.randrange(5)]) + draw.randbytes((width * channels * bits + 7) // 8)
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", 13, 9, bits, kind, 0, 0, interlace))]
    if kind == 3:
        chunks.append((b"PLTE", draw.randbytes(3 * 2**bits)))
    if draw.random() < 0.3:
        chunks.append((b"tRNS", draw.randbytes({0: 2, 2: 6, 3: 2}.get(kind, 2))))
    if draw.random() < 0.3:
        chunks.append((draw.choice([b"zTXt", b"iCCP", b"eXIf", b"gAMA", b"iTXt"]), draw.randbytes(draw.randrange(60))))
    packed = zlib.compress(raw, draw.randrange(10))
    cut = draw.randrange(1, len(packed))
    chunks += [(b"IDAT", packed[:cut]), (b"IDAT", packed[cut:]), (b"IEND", b"")]
    return chunks


def png_bytes(chunks):
    out = b"\x89PNG\r\n\x1a\n"
    for kind, data in chunks:
        out += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return out


def bmp(bits, draw):
    """Returns a BMP of 13 x 9 pixels of noise."""
    row = (13 * bits + 31) // 32 * 4
    colours = draw.randbytes(4 * 2**bits) if bits <= 8 else b""
    fields = struct.pack("<III", 0xF800, 0x7E0, 0x1F) if bits == 16 and draw.random() < 0.5 else b""
    start = 54 + len(colours) + len(fields)
    header = struct.pack("<IiiHHIIiiII", 40, 13, draw.choice([9, -9]), 1, bits, 3 if fields else 0, row * 9, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", start + row * 9, 0, 0, start) + header + fields + colours + draw.randbytes(row * 9)


def mutated(data, draw):
    data = bytearray(data)
    for _ in range(draw.choice([0, 1, 1, 2, 4, 16])):
        place = min(draw.randrange(len(data)), draw.randrange(len(data))) if draw.random() < 0.5 else draw.randrange(len(data))
        kind = draw.random()
        if kind < 0.5:
            data[place] = draw.choice([0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)])
        elif kind < 0.6:
            data[place] ^= 1 << draw.randrange(8)
        elif kind < 0.7 and len(data) > 8:
            del data[place : place + draw.randrange(1, 9)]
        elif kind < 0.8:
            data[place:place] = draw.randbytes(draw.randrange(1, 9))
        elif kind < 0.9:
            data[place : place + 4] = struct.pack(draw.choice("<>") + "I", draw.choice([0, 1, 20000, 2**31 - 1, 2**31, 2**32 - 1]))
        elif kind < 0.95:
            end = min(len(data), place + draw.randrange(1, 200))
            data[place:place] = data[place:end]
        else:
            del data[place + 1 :]
    return bytes(data)


def make(seed, number):
    draw = random.Random(f"{seed} {number}")
    kind = draw.random()
    if kind < 0.45:
        return mutated(base64.b64decode(draw.choice([BASELINE, PROGRESSIVE, GRAY, CMYK])), draw)
    if kind < 0.85:
        colours, bits = draw.choice([(0, 1), (0, 4), (0, 8), (0, 16), (2, 8), (2, 16), (3, 1), (3, 2), (3, 4), (3, 8), (4, 8), (4, 16), (6, 8), (6, 16)])
        chunks = png(bits, colours, draw.randrange(2), draw)
        if draw.random() < 0.7:  # with correct checksums, so that the code after the check is reached
            chunks = [(k, mutated(d, draw) if d and draw.random() < 0.3 else d) for k, d in chunks]
            return png_bytes(chunks)
        return mutated(png_bytes(chunks), draw)
    return mutated(bmp(draw.choice([1, 4, 8, 16, 24, 32]), draw), draw)


def fails(program, folder, files):
    """Returns a description of the failure to decode these files; "" if there is none."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "all/c").mkdir(parents=True)
    for name, data in files:
        (folder / "all/c" / name).write_bytes(data)
    draw = random.Random(len(files))
    channels, resize = draw.choice([1, 3, 4]), draw.choice(["stretch", "crop", "pad"])
    config = draw.choice([CONFIG, MASKS]).format(channels=channels, resize=resize, classes=draw.choice(["numbers", "[0, 255]"]))
    (folder / "config.yaml").write_text(config, encoding="utf-8")
    try:
        done = patiently(lambda seconds: subprocess.run([program, "check", "config.yaml"], cwd=folder, capture_output=True, text=True,
                                                        errors="replace", timeout=seconds, check=False), SECONDS)
    except subprocess.TimeoutExpired as hang:
        return f"takes more than {hang.timeout:.0f} s"
    noise = [word for word in NOISE if word in done.stdout + done.stderr]
    if done.returncode not in (0, 2) or noise:
        return f"exit code {done.returncode}, {noise}:\n{done.stderr[-3000:]}"
    return ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--long", action="store_true")
    options = parser.parse_args()
    program, at_once = str(pathlib.Path(options.program).resolve()), 500
    count = options.count or (200000 if options.long else 1500)
    folder = pathlib.Path(tempfile.mkdtemp())
    for first in range(0, count, at_once):
        files = [(f"{n}.bin", make(options.seed, n)) for n in range(first, min(first + at_once, count))]
        wrong = fails(program, folder, files)
        if not wrong:
            continue
        while len(files) > 1:  # keeps the half that still fails
            half = len(files) // 2
            for part in (files[:half], files[half:]):
                if found := fails(program, folder, part):
                    files, wrong = part, found
                    break
            else:
                break
        fails(program, folder, files)
        sys.exit(f"{', '.join(name for name, _ in files[:3])} in {folder}: {wrong}")
    shutil.rmtree(folder)
    print(f"{count} images: no crash, no hang")


if __name__ == "__main__":
    main()
