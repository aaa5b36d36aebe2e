// Samples in tar archives: which files form a sample, the order of samples, and errors with byte offsets.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <sys/resource.h>

#include <doctest/doctest.h>

#include "data/pictures/tar_index.h"
#include "data/readers/file_pattern.h"
#include "support.h"
#include "support/image_files.h"

namespace dtrain::test {

namespace {

const std::vector<TensorSpec> kInput{{"image", {4, 5, 3}, DType::float32}};
const std::vector<TensorSpec> kClass{{"", {}, DType::int32}}, kNumber{{"", {1}, DType::float32}};

/// Returns a file in an archive in POSIX format: the header and the content, padded to whole blocks.
std::string member(const std::string& name, const std::string& content, char type = '0',
                   const std::string& prefix = "", const std::string& size = "") {
  std::string header(512, '\0');
  const auto put = [&](size_t at, const std::string& text) { header.replace(at, text.size(), text); };
  const auto octal = [](size_t value, size_t digits) {
    std::string text(digits, '0');
    for (size_t i = digits; value > 0; value /= 8) text[--i] = static_cast<char>('0' + value % 8);
    return text;
  };
  put(0, name);
  put(100, "0000644");
  put(124, size.empty() ? octal(content.size(), 11) : size);
  put(148, "        ");
  header[156] = type;
  put(257, std::string("ustar\00000", 8));
  put(345, prefix);
  size_t sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, octal(sum, 6) + std::string("\0 ", 2));
  return header + content + std::string((512 - content.size() % 512) % 512, '\0');
}

const std::string kEnd(1024, '\0');

/// Returns an image with `number` in every byte.
std::string picture(int number) {
  const Bytes bytes = png_of({4, 5, 3, Bytes(60, static_cast<uint8_t>(number))});
  return {bytes.begin(), bytes.end()};
}

std::string sample(const std::string& key, int number, const std::string& label) {
  return member(key + ".png", picture(number)) + member(key + ".cls", label);
}

std::shared_ptr<const Dataset> open(const TempDir& folder, const std::string& options,
                                    const std::vector<TensorSpec>& targets = kClass) {
  const DatasetSpec spec = parse(folder, "train: {webdataset: {" + options + "}}");
  return open_split(spec, *spec.train, kInput, targets);
}

std::vector<double> firsts(const Dataset& data) {
  std::vector<double> all;
  for (int64_t i = 0; i < data.size(); ++i) all.push_back(read_rows(data, {i}, 0)[0]);
  return all;
}

std::vector<std::string> names_in(const std::string& archive) {
  const TempDir folder;
  write_file(folder / "a.tar", archive);
  std::vector<std::string> names;
  for (const TarMember& one : list_tar(InputFile(folder / "a.tar"))) names.push_back(one.name);
  return names;
}

/// Returns the error message for an archive, without the path.
std::string refused(const std::string& archive) {
  const TempDir folder;
  write_file(folder / "a.tar", archive);
  const std::string error = error_of([&] { list_tar(InputFile(folder / "a.tar")); });
  return error.substr(std::min(error.find("a.tar: "), error.size()));
}

}  // namespace

TEST_CASE("samples of several archives are numbered in order and read in any order") {
  const TempDir folder;
  write_file(folder / "a-00.tar", sample("cat/1", 10, "1\n") + sample("cat/2", 20, " 0") + kEnd);
  write_file(folder / "a-01.tar", member("__meta__.json", "{}") + member("dir/", "", '5') +
                                      sample("cat/1", 30, "2") + member("cat/1.json", "{}") + kEnd);
  const auto data = open(folder, "files: 'a-{00..01}.tar'");
  CHECK(firsts(*data) == std::vector<double>{10, 20, 30});
  CHECK(read_all(*data, 1) == std::vector<double>{1, 0, 2});
  CHECK(read_rows(*data, {2, 0, 1}, 0)[60] == 10);
  CHECK(data->sample_id(2) == folder / "a-01.tar" + ":cat/1.png");
  CHECK(data->identity().files.size() == 2);
  CHECK(firsts(*open(folder, "files: '*-0[01].tar'")) == std::vector<double>{10, 20, 30});
  CHECK(firsts(*open(folder, "files: 'a-{01,00}.tar'")) == std::vector<double>{30, 10, 20});
  // Predictions can be made for a single archive. It need not contain all classes.
  const DatasetSpec spec = parse(folder, "train: {webdataset: 'a-*.tar'}");
  CHECK(open_inputs(given(folder / "a-00.tar"), spec, kInput, {})->size() == 2);
}

TEST_CASE("the soft limit of open files is raised if it is reached") {
  const TempDir folder;
  write_file(folder / "a", "content");
  struct rlimit before {};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  REQUIRE(before.rlim_max > 200);
  const struct rlimit low { 100, before.rlim_max };
  REQUIRE(setrlimit(RLIMIT_NOFILE, &low) == 0);
  {
    std::vector<std::unique_ptr<InputFile>> open_at_once;
    for (int i = 0; i < 120; ++i) open_at_once.push_back(std::make_unique<InputFile>(folder / "a"));
    CHECK(open_at_once.back()->size() == 7);
  }
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
}

TEST_CASE("targets are numbers, or names that are numbered in sorted order") {
  const TempDir folder;
  const auto labeled = [&](const std::string& ending) {
    return member("1.x.png", "no picture of a sample") + member("1.JPG", picture(1)) +
           member("1." + ending, "fox") + member("2.png", picture(2)) + member("2." + ending, "ant") + kEnd;
  };
  write_file(folder / "names.tar", labeled("txt"));
  const auto data = open(folder, "files: names.tar, target: txt");
  CHECK(read_all(*data, 1) == std::vector<double>{1, 0});
  CHECK(data->facts().source.class_names.at("target") == std::vector<std::string>{"ant", "fox"});
  CHECK(read_all(*open(folder, "files: names.tar, target: txt, class_names: [fox, ant]"), 1) ==
        std::vector<double>{0, 1});
  const auto error = [&](const std::string& options, const std::vector<TensorSpec>& targets = kClass) {
    return error_of([&] { open(folder, options, targets); });
  };
  CHECK(contains(error("files: names.tar, target: txt, class_names: [fox]"),
                 "names.tar:2.png: expected one of the classes 'fox' as its target, found 'ant'"));
  CHECK(contains(
      error("files: names.tar"),
      "names.tar:1.JPG: this sample has no target file 1.cls, only files with the extensions jpg, txt"));
  write_file(folder / "numbers.tar", sample("1", 1, "0.5") + sample("2", 2, "-3e0") + kEnd);
  CHECK(read_all(*open(folder, "files: numbers.tar", kNumber), 1) == std::vector<double>{0.5, -3});
  CHECK(contains(error("files: numbers.tar"),
                 "numbers.tar:1.png: expected an integer (int32) as its target, found '0.5'"));
}

TEST_CASE("class_names gives names to the class numbers in an archive") {
  const TempDir folder;
  write_file(folder / "a.tar", sample("1", 1, "2") + sample("2", 2, "0\n") + kEnd);
  write_file(folder / "b.tar", sample("1", 1, "1") + kEnd);
  DatasetSpec spec = parse(folder,
                           "train: {webdataset: {files: a.tar, class_names: [fox, ant, bee]}}\n"
                           "validation: {webdataset: {files: b.tar}}\n");
  const auto data = open_split(spec, *spec.train, kInput, kClass);
  CHECK(read_all(*data, 1) == std::vector<double>{2, 0});
  CHECK(data->facts().source.class_names.at("target") == std::vector<std::string>{"fox", "ant", "bee"});
  spec.facts = data->facts();
  CHECK(read_all(*open_split(spec, *spec.validation, kInput, kClass), 1) == std::vector<double>{1});
  const auto error = [&](const std::string& names) {
    return error_of([&] { open(folder, "files: a.tar, class_names: " + names); });
  };
  CHECK(contains(error("[fox, ant]"),
                 "a.tar:1.png: expected one of the classes '0', '1' as its target, found '2'"));
  // Class names may look like numbers.
  CHECK(read_all(*open(folder, "files: a.tar, class_names: ['2', '0']"), 1) == std::vector<double>{0, 1});
  write_file(folder / "a.tar", sample("1", 1, "1") + sample("2", 2, "fox") + kEnd);
  CHECK(contains(error("[fox, ant]"), "a.tar:2.png: expected one of the classes '0', '1'"));
}

TEST_CASE("an invalid sample is an error with its offset") {
  const TempDir folder;
  const auto error = [&](const std::string& archive) {
    write_file(folder / "a.tar", archive);
    return error_of([&] { open(folder, "files: a.tar"); });
  };
  CHECK(contains(error(sample("1", 1, "0") + member("2.cls", "1") + kEnd),
                 "a.tar:2.cls: this sample has no image (jpg, jpeg, png, bmp)"));
  CHECK(contains(error(sample("1", 1, "0") + member("1.jpg", picture(1)) + kEnd),
                 "a.tar:1.jpg: each sample must have one image, but there is a second one: 1.png (its header "
                 "is at byte 2048)"));
  CHECK(contains(error(member("1.png", "", '2') + kEnd), "a.tar:1.png: this must be a file, but is a link"));
  CHECK(contains(error(sample("1", 1, " \n") + kEnd),
                 "a.tar:1.cls: this file must contain a class, but is empty"));
  CHECK(contains(error(member("1.png", "no picture") + member("1.cls", "0") + kEnd),
                 "a.tar:1.png: expected a JPEG, PNG or BMP, found a file that is not an image"));
  CHECK(contains(error(member("notes.txt", "none") + kEnd), "a.tar: no samples with images"));
  CHECK(contains(error_of([&] { open(folder, "files: none-*.tar"); }),
                 "expected files that match this pattern"));
  const std::string broken = sample("1", 1, "0") + member("2.png", "text") + member("2.cls", "1") + kEnd;
  write_file(folder / "a.tar", broken);
  const auto data = open(folder, "files: a.tar, on_error: skip");
  CHECK(read_all(*data, 1) == std::vector<double>{0});
  CHECK(contains(data->warnings().at(0), "1 of 2 files were left out"));
}

TEST_CASE("an archive that changes before it is read is an error") {
  const TempDir folder;
  write_file(folder / "a.tar", sample("1", 1, "0") + kEnd);
  const auto data = open(folder, "files: a.tar");
  write_file(folder / "a.tar", sample("1", 2, "0") + kEnd + kEnd);
  CHECK_THROWS_WITH_AS(firsts(*data), doctest::Contains("a.tar: the file was changed"), Error);
}

TEST_CASE("file names of every length and format are read") {
  const std::string longest(300, 'n');
  CHECK(names_in(member("b.png", "1", '0', "dir/a") + kEnd) == std::vector<std::string>{"dir/a/b.png"});
  CHECK(names_in(member("././@LongLink", longest + '\0', 'L') + member("short", "1") + member("next", "") +
                 kEnd) == std::vector<std::string>{longest, "next"});
  CHECK(names_in(member("pax", "20 path=caf\xc3\xa9/1.png\n", 'x') + member("short", "1") + kEnd) ==
        std::vector<std::string>{"caf\xc3\xa9/1.png"});
  // If a pax header has a size, this size replaces the size in the normal header.
  CHECK(names_in(member("pax", "10 size=3\n", 'x') + member("a", "123", '0', "", "00000000000") +
                 member("b", "") + kEnd) == std::vector<std::string>{"a", "b"});
  CHECK(names_in(member("pax", "20 comment=anything\n", 'g') + member("a", "") + kEnd).size() == 1);
  // The size may be a GNU base-256 number.
  CHECK(
      names_in(member("a", "123", '0', "", std::string("\x80\0\0\0\0\0\0\0\0\0\0\x03", 12)) + kEnd).size() ==
      1);
  // A hard link has no content, even if its header has a size.
  CHECK(names_in(member("a", "", '1', "", "00000001000") + member("b", "") + kEnd) ==
        std::vector<std::string>{"a", "b"});
}

TEST_CASE("a truncated archive is an error with its offset") {
  const std::string good = member("1.png", std::string(600, 'x')) + member("1.cls", "0") + kEnd;
  CHECK(names_in(good).size() == 2);
  CHECK(contains(refused(good.substr(0, good.size() - 1024)),
                 "a.tar: expected the next file or the end marker (blocks of zeros) of the tar archive at "
                 "byte 2560, found the end of a truncated archive"));
  CHECK(
      contains(refused(good.substr(0, 900)),
               "expected a file of 600 bytes at byte 0, found only 388 bytes before the end of the archive"));
  CHECK(contains(refused(good.substr(0, 300)), "at byte 0, found the end"));
  CHECK(contains(refused(""), "a.tar: expected a tar archive, found an empty file"));
  std::string damaged = good;
  damaged[1536 + 3] = 'X';
  CHECK(contains(refused(damaged), "at byte 1536, found a header with a wrong checksum"));
  CHECK(contains(refused(std::string(2048, 'x')),
                 "the header of a file in a tar archive at byte 0, found something"));
  const auto with_size = [](const std::string& size) {
    return refused(member("a", "", '0', "", size) + kEnd);
  };
  CHECK(contains(with_size("77777777777"), "expected a file of 8589934591 bytes at byte 0"));
  CHECK(contains(with_size("12x"), "expected a file's size at byte 0"));
  CHECK(contains(with_size(std::string(12, '\xff')), "expected a file's size at byte 0"));
  CHECK(
      contains(with_size(std::string("\x80") + std::string(11, '\xff')), "expected a file's size at byte 0"));
  CHECK(contains(refused(member("x", "9999 path=a\n", 'x') + kEnd),
                 "expected the records of a pax header at byte 512"));
  CHECK(contains(refused(member("x", "5 a=\n", 'x') + member("x", "0 a=b\n", 'x') + kEnd),
                 "expected the records of a pax header at byte 1536"));
  CHECK(contains(refused(member("x", "20 size=-1234567890\n", 'x') + kEnd),
                 "expected a file's size at byte 512"));
  CHECK(contains(refused(member("x", "24 GNU.sparse.major=1.0\n", 'x') + kEnd), "found a sparse file"));
  CHECK(contains(refused(member("a", "", 'S') + kEnd),
                 "expected a regular file at byte 0, found a sparse file"));
  CHECK(contains(refused(gzip_of(good)),
                 "expected an uncompressed tar archive, found one that is compressed with gzip, which does "
                 "not allow random access to its samples; decompress it with `gzip -d`"));
  CHECK(contains(refused(std::string("\x28\xb5\x2f\xfd zstd", 9)), "compressed with zstd"));
}

TEST_CASE("braces in a name expand to several files") {
  using Names = std::vector<std::string>;
  CHECK(expand_braces("a.tar") == Names{"a.tar"});
  CHECK(expand_braces("a-{08..11}.tar") == Names{"a-08.tar", "a-09.tar", "a-10.tar", "a-11.tar"});
  CHECK(expand_braces("{2..0}") == Names{"2", "1", "0"});
  CHECK(expand_braces("{a,b{0..1}}/{x,}") == Names{"a/x", "a/", "b0/x", "b0/", "b1/x", "b1/"});
  CHECK(expand_braces("{a}-{b") == Names{"{a}-{b"});
  CHECK(expand_braces("{0..99999}").size() == 100000);
  CHECK(contains(error_of([] { expand_braces("{0..100000}"); }), "at most 100000 files"));
  CHECK(contains(error_of([] { expand_braces("{0..999}{0..999}"); }), "at most 100000 files"));
}

}  // namespace dtrain::test
