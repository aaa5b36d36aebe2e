"""Creates the files that commands and configurations of README.md and docs/ use, and defines the whole configurations
that are merged with the parts shown on the pages (for docs_test.py)."""
import csv
import gzip
import pathlib
import random
import shutil
import struct
import zlib

from docs_pages import ROOT

BASES = {
    "digits": "base: configs/digits-mlp.yaml\n",
    "table": """
model: {inputs: {x: auto}, layers: [{dense: {units: auto}}]}
dataset:
  train: {csv: {file: all.csv, header: true, target: species, id: name, drop: [notes], categories: [colour]}}
  transforms: [standardize]
train: {loss: {sparse_categorical_crossentropy: {from_logits: true}}, optimizer: adam}
""",
    "regression": """
model: {inputs: {x: auto}, layers: [{dense: {units: auto}}]}
train: {loss: mean_squared_error, optimizer: adam}
""",
    "series": """
model: {inputs: {x: auto}, layers: [{lstm: {units: 8}}, {dense: {units: auto}}]}
train: {loss: mean_squared_error, optimizer: adam}
""",
    "pixels": """
model: {inputs: {pixels: [64]}, layers: [{dense: 10}]}
train: {loss: {sparse_categorical_crossentropy: {from_logits: true}}, optimizer: adam}
""",
    "images": """
model:
  inputs: {image: auto}
  layers: [{conv2d: {filters: 4, kernel_size: 3, strides: 2}}, global_average_pooling2d, {dense: {units: auto}}]
train: {loss: {sparse_categorical_crossentropy: {from_logits: true}}, optimizer: adam, batch_size: 8}
""",
    "language": """
model: {inputs: {tokens: {shape: [32], dtype: int32}}, layers: [{embedding: {input_dim: 300, output_dim: 8}}, {dense: 300}]}
train: {loss: {sparse_categorical_crossentropy: {from_logits: true}}, optimizer: adam, batch_size: 8}
""",
    "reviews": """
model:
  inputs: {tokens: {shape: auto, dtype: int32}}
  layers: [{embedding: {input_dim: 300, output_dim: 8}}, global_average_pooling1d, {dense: {units: auto}}]
train: {loss: {sparse_categorical_crossentropy: {from_logits: true}}, optimizer: adam, batch_size: 8}
""",
    "photos": "base: base-images.yaml\ndataset: {train: {images: {directory: photos, size: [32, 32]}}}\n",
    "labels": """
model: {inputs: {x: [2]}, layers: [{dense: {units: auto, activation: sigmoid}}]}
train: {loss: binary_crossentropy, optimizer: adam}
""",
    "masks": """
model: {inputs: {image: [16, 16, 3]}, layers: [{conv2d: {filters: 3, kernel_size: 3, padding: same}}]}
train: {loss: {sparse_categorical_crossentropy: {from_logits: true}}, optimizer: adam, batch_size: 8}
""",
    "restored": """
model: {inputs: {image: [16, 16, 3]}, layers: [{conv2d: {filters: 3, kernel_size: 3, padding: same}}]}
train: {loss: mean_squared_error, optimizer: adam, batch_size: 8}
""",
    "two-outputs": """
model:
  inputs: {image: [8, 8, 1], hint: [4]}
  layers:
    - flatten: {name: seen, inputs: image}
    - concatenate: {name: both, inputs: [seen, hint]}
    - dense: {name: digit, units: 10}
    - dense: {name: size, units: 1, inputs: both}
  outputs: [digit, size]
dataset: {train: {synthetic: {samples: 100, targets: {digit: {classes: 10}, size: {shape: [1]}}}}}
train:
  loss: {digit: {sparse_categorical_crossentropy: {from_logits: true}}, size: mean_squared_error}
  optimizer: adam
""",
    "branches": """
model:
  inputs: {image: [8]}
  blocks: {branch: {layers: [{dense: {name: stem, units: 8}}, {dense: {name: body, units: 8}}]}}
  layers:
    - branch: {name: left, inputs: image}
    - branch: {name: right, inputs: image}
    - concatenate: {name: merged, inputs: [left, right]}
    - dense: {name: head, units: 2}
dataset: {train: {synthetic: {samples: 100, target: {classes: 2}}}}
train: {loss: {sparse_categorical_crossentropy: {from_logits: true}}, optimizer: adam}
""",
    "deep": """
model:
  inputs: {x: [8]}
  layers: [{dense: 8}, {dense: 8}, {dense: 8}, {dense: 8}, {dense: 8}, {dense: 8}, {dense: 2}]
dataset: {train: {synthetic: {samples: 100, target: {classes: 2}}}}
train: {loss: {sparse_categorical_crossentropy: {from_logits: true}}, optimizer: adam}
""",
    "two-towers": """
dataset: {train: {synthetic: {samples: 100, target: {classes: 2}}}}
train: {loss: {sparse_categorical_crossentropy: {from_logits: true}}, optimizer: adam}
""",
}


def encode_png(width, height, colours, rows):
    """Returns a PNG; `colours`: 0 for gray levels, 2 for RGB."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, colours, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def png(width, height, seed):
    """Returns a PNG image of random noise around one color."""
    draw = random.Random(seed)
    colour = [draw.randrange(40, 216) for _ in range(3)]
    rows = b"".join(b"\0" + bytes(c + draw.randrange(-40, 40) for _ in range(width) for c in colour) for _ in range(height))
    return encode_png(width, height, 2, rows)


def mask(width, height, seed):
    """Returns a PNG of the classes 0 to 2."""
    return encode_png(width, height, 0, b"".join(b"\0" + bytes((x // 4 + y // 5 + seed) % 3 for x in range(width)) for y in range(height)))


def write_csv(path, header, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


def write_tables(folder):
    draw = random.Random(1)
    flowers = [[f"F{i}", *(f"{draw.gauss(3, 1):.1f}" for _ in range(4)), draw.choice(["blue", "red", "white"]), f"note {i}",
                draw.choice(["iris", "lily", "rose"])] for i in range(120)]
    header = ["name", "length", "width", "stem", "age", "colour", "notes", "species"]
    for name in ("flowers.csv", "all.csv", "labeled.csv"):
        write_csv(folder / name, header, flowers)
    for name in ("more.csv", "a.csv", "b.csv"):
        write_csv(folder / name, header[:-1], [row[:-1] for row in flowers[:5]])
    (folder / "more.csv.gz").write_bytes(gzip.compress((folder / "more.csv").read_bytes()))
    write_csv(folder / "bookings.csv", ["booked", "price", "discount", "nights"],
              [[f"2026-{1 + i % 12:02}-{1 + i % 28:02} 12:00", f'${draw.randrange(1, 90)},{draw.randrange(100, 999)}' if i % 9 else "",
                f"{draw.random():.1f}%", draw.choice([1, 2, "unknown", -999])] for i in range(80)])
    write_csv(folder / "tagged.csv", ["length", "width", "tags"], [[i, i % 3, ["", "red", "round", "red;round"][i % 4]] for i in range(12)])
    for name in ("train.csv", "validation.csv"):
        (folder / name).write_text("".join(",".join(str(draw.randrange(17)) for _ in range(64)) + f",{i % 10}\n" for i in range(100)))


def write_series(folder):
    draw = random.Random(2)
    rows = [[meter, f"2026-01-{1 + hour // 24:02d} {hour % 24:02d}:00", f"{5 + hour % 24 / 4 + draw.random():.2f}", draw.randrange(20)]
            for hour in range(480) for meter in ("north", "south")]
    write_csv(folder / "power.csv", ["meter", "time", "load", "temperature"], rows)


def write_images(folder):
    for k, species in enumerate(["daisy", "rose"]):
        for part in ("birds/train", "birds/validation"):
            (folder / part / species).mkdir(parents=True)
            for i in range(12):
                (folder / part / species / f"{i}.png").write_bytes(png(40, 32, k))
    for part, ending in (("pictures", "png"), ("new", "jpg"), ("pics", "jpg")):  # formats are recognized by content
        (folder / part).mkdir()
        for i in range(12):
            (folder / part / f"{i}.{ending}").write_bytes(png(40, 32, i % 2))
    for part in ("shapes/images", "shapes/masks"):
        (folder / part).mkdir(parents=True)
        for i in range(8):
            (folder / part / f"{i}.png").write_bytes(png(16, 16, i) if part.endswith("images") else mask(16, 16, i))
    write_csv(folder / "pairs.csv", ["noisy", "clean"], [[f"shapes/images/{i}.png", f"shapes/images/{7 - i}.png"] for i in range(8)])
    shutil.copytree(folder / "birds/train", folder / "photos")
    write_csv(folder / "labels.csv", ["filename", "species"], [[f"{i}.png", ["daisy", "rose"][i % 2]] for i in range(12)])


def write_texts(folder):
    draw = random.Random(2)
    words = "the a cat dog house tree sees finds likes old new green".split()
    sentence = lambda: " ".join(draw.choice(words) for _ in range(draw.randint(5, 12))) + ".\n"
    (folder / "corpus.txt").write_text("".join(sentence() for _ in range(200)))
    for kind, word in (("bad", "awful"), ("good", "great")):
        (folder / "reviews" / kind).mkdir(parents=True)
        for i in range(12):
            (folder / "reviews" / kind / f"{i}.txt").write_text(f"{word} {sentence()}")
    write_csv(folder / "reviews.csv", ["review", "label"],
              [[f"{'great' if i % 2 else 'awful'} {sentence()}", "good" if i % 2 else "bad"] for i in range(24)])


def sample_folder(name):
    """Creates a folder with the shipped configurations and data, and the files that the pages use."""
    folder = pathlib.Path(name)
    shutil.copytree(ROOT / "configs", folder / "configs")
    (folder / "datasets").symlink_to(ROOT / "datasets")
    write_tables(folder)
    write_series(folder)
    write_images(folder)
    write_texts(folder)
    for base, text in BASES.items():
        (folder / f"base-{base}.yaml").write_text(text, encoding="utf-8")
    return folder
