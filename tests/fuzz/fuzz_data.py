#!/usr/bin/env python3
"""Runs `dtrain check`, `fit` and `predict` on mutated data files. The commands must end without a signal, within 5
seconds, with the documented exit codes and without a library's text, and `fit` must train for an epoch with files that
`check` accepts.

    fuzz_data.py --program DTRAIN [--count N] [--seed S] [--long] [--jobs N]

Exits with 0 if nothing is found. Otherwise prints the finding, keeps the files of its smallest form in a folder, prints
the folder's name, and exits with 1. Each case depends only on the seed and its number."""
import argparse
import base64
import concurrent.futures
import gzip
import io
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import zlib

from patience import patiently

SECONDS = 5
NOISE = ("HDF5-DIAG", "std::", "vector::", "basic_string", "what():", "filesystem error", "terminate called", "bad_alloc",
         "Sanitizer", "runtime error:")
LOSS_FAILS = ("the loss is ", "are not finite")  # valid but extreme numbers may cause these messages

CONFIG = """\
seed: 1
model: {{inputs: {{x: {shape}}}, layers: [{before}{{flatten: {{}}}}, {{dense: {{units: {units}}}}}]}}
dataset: {{train: {{{reader}}}{more}}}
strategy: {{single: {{device: cpu:0}}}}
train: {{epochs: 1, batch_size: 16, loss: {loss}, optimizer: {{sgd: {{learning_rate: 1.0e-6}}}}}}
checkpoint: {{every: 100 epochs}}
"""
CLASSES = "{sparse_categorical_crossentropy: {from_logits: true}}"
SQUARES = "mean_squared_error"

# Two HDF5 files with a dataset g/x of 40x3 float32 in chunks, shuffled and deflated. The first file has the library's
# oldest format; the second has its latest format, with checksums. (dtrain itself only writes contiguous datasets.)
OLD_HDF5 = (
    "c-"
    "rgqaB<`1lHy_j0S*oZ76t(ZWbhvfYDH1`F!=;1%?PDCp!5nRm^dR?P68?}2sIyFT}Y6tD@gT!Gyt>b0V{;&U>F4>5qP*d27u@YC?A$ePcWgXOG"
    "itO9u(S(EB$&fL--l2#HC*gj?wfxntn0UZwD)?x(X_%-(Wv~7f=d@r8@;?H1pBY@hHGm4zNSQj1k7yfY3}30S%}+XmDcinSmt;NTr~HJg|-"
    "h#{`2o2ZMM$RGt+WLm+u3W{82@3>IKMBeZ;D0?RWp6lavCrRAhT&0qk>EJ!>hH7zHxB$a`U0angHN-Sn3<_1ngk^?yhtW^k_B0zRLQ)0?SxR|_"
    "jrNKU$M#ur6dV>)dE$H>edII`(2t(-"
    "AXypkyNEd<7*|7YNL!FQ)D&GJt{j!Wk)hHMRqhJ(_f>AIEM!|rBiaE&<n^I!`uPNR3x4qZ&dgeY$?f)MN{@;|HW%yd6Y1*ET7S(sJeOqXF{p-"
    "K{^wr$_*~<z$4MaqC$j^FtuJpy~!k%iM2Q#m&THk)|#L+Lijo)Z+)KsJyiic1A`1NSJ$+?ajb-kXu_w^;Ne|vcS#Lh=cwR?Wc|BC*Q;(zf+)v>"
    "AbH8(o0D{H?xlmFpErK8=vUhjXrC`|pbTG#GeLVA97dVYF-"
    "|AO2FTWrlV8Me0jCsxeqzIjmK%Kx*6f1H*6*`6M~o;`H_R^2B;p4v|ybtS&|{zJ|FwQs3?cvN;z+E<;*bzu`D{}%CB^JUtY@bToVwfbE3k#C}L"
    "%(m;-m)?xqfA4(3i-m5l&p1qUzJ59G`|*x5IeY(A-StrqYugbtbJbZf>$vtG9AalKf8P0S>6v-"
    "gmaeHe@$mKf8967rN|$xdXSMqH{OpymeJ}Jf^V9hqx0S8f!n;hMgN<R0iVsu8oZAPtCd(e4r26_-"
    "`r6HJ?Q_=b^!t1^@@ISdZ^;6Nov(}D@vySKYfsx%Ec+`<=CPb`#j>rhUMt4DikuuRD*5e}-"
    "5;r$8gaW0?fAcNKdb*Yk>2$?uH3$T`=;@Yo40Q<W>&N0HhbGLthlM30stb`SlI"
)
NEW_HDF5 = (
    "c-"
    "rgqaB<`1lHy|K;9!7(|4?v|6T&xuiW{DqxZmHyC5TDknG#brGOl0}Le>ZaTucm%3=C{M3_yx8{V>dY4+g4%oR1T;$ahjj7$fza^jr0=BG^fa=u"
    "To_WK>~bU}9oq)PSmGhSKPKW)TKPK?QjR7BEkNL7am@ydKD61-"
    "hP@n_Gr~k%<}P5k{~IMlfW9>*oOaoP~*jnNfh5g_)~}32JBq!+?WjD@6p|96ekZ82Pwhe(i(0Pe$>rw40-"
    "g69XgM#n2?V8A3vN>%n9aG;QWX%=qGZf?*Vlf>AIEMga++Voq|zrj*$KYf88MZSOU`p1IFb`~Qc6|2Ji48NQZinzrYoMfKfl-xeBP|N1XKeKj|"
    "K_OilG0}+uO^0Qu^D}AxLu&3JR!OUx`*0-NKarDb><2M={H5F-w;^9+2em&Z5a<1b>U9acveSL}R-"
    "yU8+vGdVV?VjKAzoI{+_+R`{b!_T<&5e%h%G$5a<bU{3>1a2v*ZUtY3RAzV*0npAke;8No}ZrIzaV$P7F#n-"
    "hOO=XiQN<RmsQN^zIjmK%Kx*6f1H*6*`6M~o;`H_R^2B;p4v|ybtS&|{zJ|FwQs3?cvN;z+E<;*bzu`D{}%CB^JUtY@bToVwfbE3k#C}L%(m;-"
    "m)?xqfA4(3i-m5l&p1qUzJ59G`|*x5IeY(A-StrqYugbtbJbZf>$vtG9AalKf8P0S>6v-"
    "gmaeHe@$mKf8967rN|$xdXSMqH{OpymeJ}Jf^V9hqx0S8f!n;hMgN<R0iVqWOXiZ|poZAPtCd(e4r26_-"
    "`r6HJ?Q_=b^!t1^@@ISdZ^;6Nov(}D@vySKYfsx%Ec+`<=CPb`#j>rhUMt4DikuuRD*5e}-"
    "5;r$8gaW0?fAcNKdb*Yk>2$?uH3$T`=;@Yo40Q<W>&N0HhbGLthlM35;bSd8vyb}RkQ"
)

# Four images as variable-length data written by h5py, and their classes.
VARIABLE_HDF5 = (
    "c-rgqaB<`1lHy_j0S*oZ76t(ZWbhvf0whrRF!=;1%?PDCp!5nRm^dR?4yv6&5NbZUx{x4OSCH!eXaHu90Skmib=@c!DZs<kF#tqIK>4urbb<+0T>+G?L`"
    "#<rWZKKfzzQ*g5ypqu%*Y54fF?^g%?y+W$w)%essLOo2bg39(jYz)6GWH;Y92EqQ~`!dI|fxe1pE2BFfuT~9Lu1<j9)!0zgDo0reVs`l>k_&00&G=0WCc"
    "-p`|AW3G5~2gwens1#l1rDseavWhFA7360N;#s{TCcV~YeMx<oMh-5AZIQha@W<aa~)y0gI;#IIYi=9tYMp?_y!rsj{BswXxpuDcNXY#CtE7ot@d*t+`n"
    "-8A9`-*TQ<@Ralo7uW}2Sp~N=atqpcTJozf7#kCyAPebaQ)uXH=lnoa`21EBEo=j`vSt_Qge!{8aw)@&0Vs3)6N6O&t1Lq_|?ZB|Jis&q?I%c%<WuJ^FL"
    "+wRn)ijPMN)E<%aG1j-I)E>*0&{-~O_23rQ-d>zUd(dj&?sr{$vRFyI@_8>3(pjDk@x3P!;w7zLwX6pVsVFbYrsBT_#c0FdQ^cK"
)


def npy(descr, shape, data):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def idx(kind, shape, data):
    return bytes([0, 0, kind, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + data


def csv(draw, header):
    lines = ["a,b,c,label\n"] if header else []
    lines += [f"{draw.random():.4g},{draw.uniform(-9, 9):.3g},{draw.randrange(100)},{draw.randrange(3)}\n" for _ in range(40)]
    return "".join(lines).encode()


def bookings(draw):
    """Returns a table with dates, amounts and missing values in two forms: with semicolons, and as R writes it, with
    comments."""
    lines, blanks = ["day;price;age;label\n"], ["# bookings\n", '"day" "price" "age" "label"\n']
    for row in range(40):
        day = f"{draw.randrange(1, 29):02}/{draw.randrange(1, 13):02}/2026"
        price = f"{draw.randrange(1, 99)}.{draw.randrange(1000):03},{draw.randrange(100):02} EUR"
        age = draw.choice(["", "k.A.", "7,5", "1.000"])
        label = draw.choice(["0", "1", "2", ""])
        lines.append(f"{day};{price};{age};{label}\n")
        blanks.append(f'"r {row}"  2026-01-{row % 28 + 1:02} "${row}"   {row} {row % 3}\n')
    return "".join(lines).encode(), "".join(blanks).encode()


def bmp(number):
    """Returns an image of 4 x 3 pixels."""
    pixels = bytes((number * 40 + i * 7) % 256 for i in range(36))
    return b"BM" + struct.pack("<IHHIIiiHHIIiiII", 90, 0, 0, 54, 40, 4, 3, 1, 24, 0, 36, 0, 0, 0, 0) + pixels


def tar(form):
    """Returns an archive with samples in the format of WebDataset. One sample has a name that is too long for the name field
    of a header."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for number in range(4):
            name = str(number) if number else "long" * 60
            for ending, data in (("bmp", bmp(number)), ("cls", str(number % 3).encode())):
                member = tarfile.TarInfo(f"{name}.{ending}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def with_sums(data):
    """Corrects the checksums in the headers of the archive. Otherwise dtrain would reject the archive before it reads
    the changed data."""
    data, at = bytearray(data), 0
    while at + 512 <= len(data) and any(data[at:at + 512]):
        data[at + 148:at + 156] = b" " * 8
        data[at + 148:at + 156] = b"%06o\0 " % sum(data[at:at + 512])
        try:
            size = int(data[at + 124:at + 135].strip(b"\0 ") or b"0", 8)
        except ValueError:
            break
        at += 512 + (size + 511) // 512 * 512
    return bytes(data)


class Format:
    """Files by name, the mutated file first, and the configuration that reads them. `fix` repairs the mutated file."""

    def __init__(self, name, files, reader, shape="[3]", units=3, loss=CLASSES, more="", before="", text=False, fix=bytes):
        self.name, self.files, self.text, self.fix = name, files, text, fix
        self.config = CONFIG.format(shape=shape, units=units, loss=loss, reader=reader, more=more, before=before)
        self.target = next(iter(files))


def formats(program, folder):
    draw = random.Random(0)
    floats = struct.pack("<120f", *(draw.uniform(-1, 1) for _ in range(120)))
    bytes_ = bytes(draw.randrange(256) for _ in range(120))
    labels = bytes(draw.randrange(3) for _ in range(40))
    plain, named = csv(draw, False), csv(draw, True)
    semicolons, blanks = bookings(random.Random(1))
    unpack = lambda text: zlib.decompress(base64.b85decode(text))
    squares = dict(units=3, loss=SQUARES)
    pictures = dict(shape="[3, 4, 3]")
    tokens = dict(shape="{shape: [3], dtype: int32}", before="{embedding: {input_dim: 300, output_dim: 2}}, ", text=True)
    prose = "".join(f"It's good, row {i % 7}; caf\u00e9.\n" for i in range(40)).encode()
    reviews = b"review,label\n" + b"".join(b'"%s",%d\n' % (line, i % 3) for i, line in enumerate(prose.splitlines()))
    npy_y = npy("|u1", "(40,)", labels)
    all_ = [
        Format("csv", {"a.csv": plain}, "csv: {file: a.csv, target: -1}", text=True),
        Format("csv with a header", {"a.csv": named}, "csv: {file: a.csv, target: label, header: true}", text=True),
        Format("csv beside another", {"a.csv": named, "b.csv": named}, "csv: {file: b.csv, target: label, header: true}",
               more=", validation: {csv: {file: a.csv, target: -1, header: true}}", text=True),
        Format("csv of dates and amounts", {"a.csv": semicolons},
               "csv: {file: a.csv, target: label, header: true, delimiter: ;, decimal: ',', thousands: ., na_values: k.A., fill: mean, "
               "dates: {day: [month, weekday, days]}, amounts: price, indicators: age, missing_target: skip}", shape="[6]", text=True),
        Format("csv of blanks", {"a.csv": blanks},
               "csv: {file: a.csv, target: label, header: true, delimiter: whitespace, comment: '#', dates: {day: [days]}, "
               "amounts: price, indicators: true, fill: 0}", text=True),
        Format("csv of time series", {"a.csv": b"day,site,load\n" + b"".join(
                   b"2026-01-%02d,%s,%d\n" % (i // 2 + 1, b"ab"[i % 2:i % 2 + 1], i * 7 % 11) for i in range(40))},
               "csv: {file: a.csv, target: load, header: true}, windows: {length: 3, horizon: 2, by: site, time: day}",
               more=", validation: {split: {of: train, fraction: 0.2}}", shape="[3, 1]", units=2, loss=SQUARES, text=True),
        Format("npy of time series", {"t.npy": npy("<f4", "(40,)", floats[:160]), "x.npy": npy("<f4", "(40, 3)", floats), "y.npy": npy_y},
               "npy: {input: x.npy, target: y.npy}, windows: {length: 2, horizon: 3, time: t.npy}", shape="[2, 3]",
               loss=SQUARES),
        Format("csv.gz", {"a.csv.gz": gzip.compress(plain, mtime=0)}, "csv: {file: a.csv.gz, target: -1}"),
        Format("csv of text", {"a.csv": reviews},
               "csv: {file: a.csv, target: label, header: true, text: {review: {tokens: words, vocabulary: 9}}}", **tokens),
        Format("csv of bpe", {"a.csv": reviews},
               "csv: {file: a.csv, target: label, header: true, text: {review: {tokens: bpe, vocabulary: 280}}}", **tokens),
        Format("text of words", {"a.txt": prose}, "text: {file: a.txt, sequence_length: 3, tokens: words, vocabulary: 9}",
               more=", validation: {split: {of: train, fraction: 0.2}}", text=True, **squares),
        Format("text of bytes", {"a.txt": prose}, "text: {file: a.txt, sequence_length: 3, stride: 2}", text=True, **squares),
        Format("npy", {"x.npy": npy("<f4", "(40, 3)", floats), "y.npy": npy_y}, "npy: {input: x.npy, target: y.npy}"),
        Format("npy, large integers", {"x.npy": npy("<i8", "(40, 3)", struct.pack("<120q", *bytes_)), "y.npy": npy_y},
               "npy: {input: x.npy, target: y.npy}"),
        Format("npy, labels", {"y.npy": npy_y, "x.npy": npy("<f8", "(40, 3)", struct.pack("<120d", *bytes_))},
               "npy: {input: x.npy, target: y.npy}"),
        Format("idx", {"x": idx(8, [40, 3], bytes_), "y": idx(8, [40], labels)}, "idx: {input: x, target: y}"),
        Format("idx, floats", {"x": idx(13, [40, 3], floats), "y": idx(8, [40], labels)}, "idx: {input: x, target: y}"),
        Format("idx.gz", {"x.gz": gzip.compress(idx(8, [40, 3], bytes_), mtime=0), "y": idx(8, [40], labels)},
               "idx: {input: x.gz, target: y}"),
        Format("cifar10", {"a.bin": b"".join(bytes([i]) + bytes((i * j) % 256 for j in range(3072)) for i in range(4))},
               "cifar10: {files: [a.bin]}", shape="[32, 32, 3]", units=10),
        Format("table of pictures", {"a.csv": b"file,kind,w\n" + b"".join(b"%d.bmp,%d,1.5\n" % (i, i % 3) for i in range(5)),
                                     **{f"{i}.bmp": bmp(i) for i in range(5)}},
               "images: {csv: {file: a.csv, path: file, target: kind, weight: w}}", text=True, **pictures),
        Format("tar", {"a.tar": tar(tarfile.PAX_FORMAT)}, "webdataset: {files: a.tar, on_error: skip}", **pictures),
        Format("tar of GNU's", {"a.tar": tar(tarfile.GNU_FORMAT)}, "webdataset: {files: a.tar, on_error: skip}", fix=with_sums, **pictures),
        Format("tar with right checksums", {"a.tar": tar(tarfile.PAX_FORMAT)}, "webdataset: {files: a.tar, on_error: skip}",
               fix=with_sums, **pictures),
        Format("hdf5 in chunks", {"a.h5": unpack(OLD_HDF5)}, "hdf5: {file: a.h5, input: g/x, target: g/x}", **squares),
        Format("hdf5 of pictures", {"a.h5": unpack(VARIABLE_HDF5)},
               "images: {hdf5: {file: a.h5, input: p, target: y}, on_error: skip}", **pictures),
        Format("hdf5 of the latest", {"a.h5": unpack(NEW_HDF5)}, "hdf5: {file: a.h5, input: g/x, target: g/x}", **squares),
    ]
    # Files that dtrain itself has written: predictions, and a cache file.
    first = all_[0]
    lay_out(first, folder, first.files[first.target])
    run(program, folder, "fit", "c.yaml", "-o", "run", "-q", "--set", "dataset.cache={file: cache}", must=True)
    (folder / "in.csv").write_bytes(b"".join(line.rsplit(b",", 1)[0] + b"\n" for line in plain.splitlines()))
    run(program, folder, "predict", "run", "-i", "in.csv", "-o", "p.h5", must=True)
    all_.append(Format("hdf5 of dtrain's", {"p.h5": (folder / "p.h5").read_bytes()},
                       "hdf5: {file: p.h5, input: predictions, target: predictions}", **squares))
    return all_


def lay_out(form, folder, content):
    for name, data in form.files.items():
        (folder / name).write_bytes(form.fix(content) if name == form.target else data)
    (folder / "c.yaml").write_text(form.config)


def run(program, folder, *arguments, must=False):
    try:
        done = patiently(lambda seconds: subprocess.run([program, *arguments], cwd=folder, stdin=subprocess.DEVNULL, timeout=seconds,
                                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE), SECONDS)
        err, code = done.stderr.decode("utf-8", "replace"), done.returncode
    except subprocess.TimeoutExpired as hang:
        err, code = (hang.stderr or b"").decode("utf-8", "replace"), "a hang"
    if must and code != 0:
        sys.exit(f"{program} {' '.join(arguments)}: exit {code}\n{err}")
    return code, err


TOKENS = [b"nan", b"inf", b"-1", b"1e999", b"1e39", b"99999999999", b"", b"\"", b"\"\"", b",", b"\n", b"\r\n", b"\0", b"a", b"0x10",
          b"+", b"-", b".", b"1e", b"\xff", b"\xef\xbb\xbf", b" ", b";", b"2147483648", b"1.5", b",,,,", b"label",
          b"#", b"\t", b"2026-01-31", b"31/12/26", b"Jan 1 2000 12:00", b"1769817600", b"20261331", b"$5", b"(3%)", b"1.234,5", b"k.A."]
NUMBERS = [0, 1, 2, 3, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 1 << 40, (1 << 63) - 1, 1 << 63,
           (1 << 64) - 1]


def mutations(draw, size, text):
    """Yields a few changes, each a tuple of a kind and its arguments. The changes are applied in order; a change that
    no longer fits is skipped."""
    def place():  # prefers headers, which are the most fragile
        return draw.randrange(min(size, draw.choice([16, 64, 128, 512, 2048, size]))) if draw.random() < 0.8 else draw.randrange(size)
    for _ in range(draw.choice([1, 1, 1, 2, 3, 6])):
        kind = draw.choice(["bit", "byte", "number", "cut", "remove", "insert", "copy", "token"] if not text else
                           ["byte", "token", "token", "token", "cut", "remove", "copy", "line"])
        at = place()
        if kind == "bit":
            yield kind, at, 1 << draw.randrange(8)
        elif kind == "byte":
            yield kind, at, draw.randrange(256)
        elif kind == "number":
            width = draw.choice([1, 2, 4, 8])
            value = draw.choice(NUMBERS) % (1 << 8 * width)
            yield kind, at, value.to_bytes(width, draw.choice(["little", "big"]))
        elif kind == "token":
            yield kind, at, draw.choice([1, 1, 2, 5, 0]), draw.choice(TOKENS)
        elif kind == "insert":
            yield kind, at, bytes(draw.randrange(256) for _ in range(draw.choice([1, 2, 4, 8, 100])))
        else:
            yield kind, at, draw.choice([1, 2, 4, 8, 64, 512, 4096]), place()


def apply(content, changes):
    data = bytearray(content)
    for kind, at, *rest in changes:
        if at >= len(data):
            continue
        if kind == "bit":
            data[at] ^= rest[0]
        elif kind == "byte":
            data[at] = rest[0]
        elif kind == "number":
            data[at:at + len(rest[0])] = rest[0]
        elif kind == "token":
            data[at:at + rest[0]] = rest[1]
        elif kind == "insert":
            data[at:at] = rest[0]
        elif kind == "cut":
            del data[at:]
        elif kind == "remove":
            del data[at:at + rest[0]]
        elif kind == "copy":
            data[rest[1]:rest[1]] = data[at:at + rest[0]]
        elif kind == "line":
            end = data.find(b"\n", at) + 1
            data[rest[1]:rest[1]] = data[at:end]
    return bytes(data)


def finding(program, folder, form, content, also):
    """Returns a description of dtrain's failure on this file; None if there is none."""
    for left in folder.iterdir():
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    lay_out(form, folder, content)

    def look(allowed, *arguments):
        code, err = run(program, folder, *arguments)
        noise = next((word for word in NOISE if word in err), None)
        if code not in allowed:
            return code, f"{' '.join(arguments)}: exit {code}, expected one of {allowed}: {err[-400:]}"
        return code, noise and f"{' '.join(arguments)}: prints '{noise}': {err[-400:]}"

    checked, wrong = look((0, 2), "check", "c.yaml", "-q")
    if wrong:
        return wrong
    sets = ["--set", "dataset.cache=" + ("memory" if also % 2 else "none")]
    trained, wrong = look((0, 1, 2), "fit", "c.yaml", "-o", "run", "-q", *sets)
    if wrong:
        return wrong
    if checked == 0 and trained != 0:
        code, err = run(program, folder, "fit", "c.yaml", "-o", "run", "--overwrite", "-q", *sets)
        if code != 1 or not any(words in err for words in LOSS_FAILS):
            return f"check accepts the file, but fit ends with {code}: {err[-400:]}"
    if checked == 2 and trained == 0:
        return "check rejects a file that fit accepts"
    if trained == 0 and also % 4 == 0:
        return look((0, 2), "predict", "run", "-i", form.target, "-o", "out.npy", "-q")[1]
    return None


def try_case(program, forms, seed, number, folder):
    draw = random.Random(f"{seed}:{number}")
    form = forms[number % len(forms)]
    content = form.files[form.target]
    changes = list(mutations(draw, len(content), form.text))
    also = draw.randrange(4)
    wrong = finding(program, folder, form, apply(content, changes), also)
    if not wrong:
        return None
    for change in list(changes):  # removes changes that are not needed for the finding
        fewer = [one for one in changes if one is not change]
        if fewer and (again := finding(program, folder, form, apply(content, fewer), also)):
            changes, wrong = fewer, again
    finding(program, folder, form, apply(content, changes), also)
    kept = pathlib.Path(tempfile.mkdtemp(prefix=f"fuzz-data-{number}-"))
    shutil.copytree(folder, kept, dirs_exist_ok=True)
    return f"case {number} of seed {seed}, {form.name}, {changes}\n  {wrong}\n  cd {kept} && {program} check c.yaml"


def work(program, forms, seed, numbers):
    with tempfile.TemporaryDirectory() as folder:
        return [found for number in numbers if (found := try_case(program, forms, seed, number, pathlib.Path(folder)))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--long", action="store_true", help="10,000 cases")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    program = str(pathlib.Path(options.program).resolve())
    count = options.count or (10000 if options.long else 168)
    with tempfile.TemporaryDirectory() as folder:
        forms = formats(program, pathlib.Path(folder))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        parts = [pool.submit(work, program, forms, options.seed, range(part, count, options.jobs)) for part in range(options.jobs)]
        found = [text for part in parts for text in part.result()]
    print("\n".join(found[:20]))
    print(f"{count} data files, {len(found)} findings")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
