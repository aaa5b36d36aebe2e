"""Shared base of the `dtrain new` tests."""
import struct
import zlib

from support import Case


def png(height, width, colour=(10, 200, 30)):
    """Returns a PNG image of a single color. It is grayscale if `colour` is one number."""
    colour = (colour,) if isinstance(colour, int) else colour
    return png_of_rows([list(colour) * width] * height, len(colour))


def png_of_rows(rows, channels=1, bits=8):
    """Returns a PNG image of these values, with 1 channel (gray levels) or 3 (RGB). With 16 bits, two numbers are the
    bytes of one value."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", len(rows[0]) * 8 // bits // channels, len(rows), bits, 0 if channels == 1 else 2, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


class NewCase(Case):
    def new(self, *arguments, **options):
        self.dtrain("new", *arguments, **options)
        return (self.dir / "data.yaml").read_text(encoding="utf-8")

    def fits(self):
        """Checks that fit accepts the written configuration, then deletes it to make room for the next
        configuration."""
        self.dtrain("fit", "data.yaml", "--epochs", "1", "--overwrite")
        (self.dir / "data.yaml").unlink()

    def widths(self, config="data.yaml"):
        """Returns the number of inputs and the number of outputs of the network."""
        dense = [layer for layer in self.json("summary", config)["layers"] if layer["kind"] == "dense"]
        return dense[0]["parameters"] // dense[0]["output_shape"][0] - 1, dense[-1]["output_shape"][0]

    def picture(self, name):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(30, 40))
