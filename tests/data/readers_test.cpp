#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <thread>

#include <doctest/doctest.h>

#include "data/files/input_file.h"
#include "data/support.h"
#include "support/source_dir.h"

namespace dtrain::test {

namespace {

using Values = std::vector<double>;
const TensorSpec kLabel{"y", {}, DType::int32};

/// Opens the training split of a data set for a model with one input.
std::shared_ptr<const Dataset> open_train(const TempDir& folder, const std::string& yaml,
                                          const TensorSpec& input,
                                          const std::vector<TensorSpec>& targets = {kLabel}) {
  const DatasetSpec spec = parse(folder, yaml);
  return open_split(spec, *spec.train, {input}, targets);
}

std::string open_error(const TempDir& folder, const std::string& yaml, const TensorSpec& input,
                       const std::vector<TensorSpec>& targets = {kLabel}) {
  return error_of([&] {
    const auto dataset = open_train(folder, yaml, input, targets);
    read_all(*dataset, 0);
  });
}

}  // namespace

TEST_CASE("idx: plain and gzip files are read with every cache") {
  const TempDir folder;
  const std::string images = idx_bytes({3, 2, 2}, "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\xff");
  const std::string labels = idx_bytes({3}, std::string("\x07\x00\x09", 3));
  write_file(folder / "x", images);
  write_gzip(folder / "x.gz", images);
  write_file(folder / "y", labels);
  write_gzip(folder / "y.gz", labels);
  for (const std::string suffix : {"", ".gz"}) {
    for (const std::string cache : {"none", "memory", "{file: kept}"}) {
      CAPTURE(suffix);
      CAPTURE(cache);
      const auto data = open_train(
          folder, "train: {idx: {input: x" + suffix + ", target: y" + suffix + "}}\ncache: " + cache,
          {"image", {2, 2}});
      CHECK(data->size() == 3);
      CHECK(data->in_memory() == (cache == "memory" || (suffix == ".gz" && cache == "none")));
      CHECK(read_rows(*data, {2, 0}, 0) == Values{9, 10, 11, 255, 1, 2, 3, 4});
      CHECK(read_all(*data, 1) == Values{7, 0, 9});
    }
  }
}

TEST_CASE("idx: a file that is not IDX is an error") {
  const TempDir folder;
  const TensorSpec input{"image", {2}};
  const std::string yaml = "train: {idx: {input: x}}";
  const std::string good = idx_bytes({2, 2}, "abcd");
  const auto error = [&](const std::string& bytes, bool packed = false) {
    packed ? write_gzip(folder / "x", bytes) : write_file(folder / "x", bytes);
    return open_error(folder, yaml, input, {});
  };
  CHECK(error(good).empty());
  CHECK(contains(error(good.substr(0, good.size() - 1)), "expected a file of 16 bytes"));
  CHECK(contains(error(good + "e"), "found 17"));
  CHECK(contains(error(good + "e", true), "but the file has more data"));
  CHECK(contains(error(good.substr(0, good.size() - 1), true), "found only 3 bytes before the end"));
  CHECK(contains(error("PK\x03\x04 something else"), "expected an IDX file"));
  CHECK(contains(error(""), "found an empty file"));
  CHECK(contains(error(good.substr(0, 6)), "IDX extent"));
  // Headers that claim terabytes of data are rejected before memory is allocated.
  CHECK(contains(error(idx_bytes({0xffffffff, 0xffffffff}, "abcd")), "fits in memory"));
  CHECK(contains(error(idx_bytes({0xfffffff, 256}, "abcd"), true), "too small"));
  CHECK(contains(error(idx_bytes({0, 4}, "")), "expected an array with at least one element"));
  write_gzip(folder / "x", idx_bytes({2, 2000}, std::string(4000, 'a')));
  const std::string packed = read_file(folder / "x");
  write_file(folder / "x", packed.substr(0, packed.size() - 12));
  CHECK(contains(open_error(folder, yaml, {"image", {2000}}, {}), folder / "x"));
  std::filesystem::remove(folder / "x");
  const std::string missing = open_error(folder, yaml, input, {});
  CHECK(contains(missing, folder / "x"));
  CHECK(contains(missing, "dataset.yaml:1:"));
}

TEST_CASE("gzip: several members are read, and damage is an error") {
  const TempDir folder;
  const auto unpacked = [&](const std::string& packed) {
    write_file(folder / "x.gz", packed);
    InputStream stream(folder / "x.gz");
    std::string all(10000, '\0');
    all.resize(stream.read(all.data(), all.size()));
    return all;
  };
  std::string text;
  for (int i = 0; i < 700; ++i) text += std::to_string(i * i);
  const std::string packed = gzip_of(text);
  REQUIRE(packed.size() < text.size());
  CHECK(unpacked(packed) == text);
  CHECK(unpacked(packed + gzip_of("") + gzip_of("the end")) == text + "the end");
  CHECK(unpacked(packed + std::string(512, '\0')) == text);  // some tapes and tools append zeros as padding
  // A second gzip member starts near the end of a read buffer.
  std::string noise;
  for (uint32_t i = 0, x = 1; i < (1u << 18); ++i)
    noise += static_cast<char>((x = x * 1664525 + 1013904223) >> 24);
  for (size_t cut = 0; cut < 40; ++cut) {
    const std::string first = noise.substr(0, (1u << 18) - 60 + cut);
    write_file(folder / "x.gz", gzip_of(first) + gzip_of("the end"));
    InputStream stream(folder / "x.gz");
    std::string all(first.size() + 100, '\0');
    all.resize(stream.read(all.data(), all.size()));
    CHECK(all == first + "the end");
  }
  // If data are truncated or changed, reading fails, at the latest at the end of the file. A few bits of the
  // compressed data have no effect. If one of them is changed, the result is correct.
  const auto unpacked_or_refused = [&](const std::string& damaged) {
    try {
      return unpacked(damaged);
    } catch (const UserError&) {
      return text;
    }
  };
  for (size_t size = 2; size < packed.size(); ++size)
    CHECK_THROWS_AS(unpacked(packed.substr(0, size)), UserError);
  constexpr size_t kHeader = 10;  // bytes of the header, which may contain any time and any file name
  for (size_t bit = 8 * kHeader; bit < 8 * packed.size(); ++bit) {
    std::string damaged = packed;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    CHECK(unpacked_or_refused(damaged) == text);
  }
}

TEST_CASE("npy: every element type and byte order is read, and damage is an error") {
  const TempDir folder;
  const auto values = [&](const std::string& bytes, const TensorSpec& input) {
    write_file(folder / "x.npy", bytes);
    return read_all(*open_train(folder, "train: {npy: {input: x.npy}}", input, {}), 0);
  };
  const TensorSpec pair{"x", {2}}, integers{"x", {2}, DType::int32};
  CHECK(values(npy_bytes("<f4", "(2, 2)", raw<float>({1, 2, 3, -4})), pair) == Values{1, 2, 3, -4});
  CHECK(values(npy_bytes("<f8", "(1, 2)", raw<double>({0.5, 1e10})), pair) == Values{0.5, 1e10});
  CHECK(values(npy_bytes(">i2", "(1, 2)", std::string("\x01\x00\xff\xfe", 4)), integers) == Values{256, -2});
  CHECK(values(npy_bytes("<i8", "(1, 2)", raw<int64_t>({-5, 7})), integers) == Values{-5, 7});
  CHECK(values(npy_bytes("|b1", "(2,)", std::string("\x01\x00", 2)), {"x", {}}) == Values{1, 0});
  const auto error = [&](const std::string& bytes) { return error_of([&] { values(bytes, integers); }); };
  CHECK(contains(error(npy_bytes("<i8", "(1, 2)", raw<int64_t>({1, int64_t{1} << 40}))), "element 1"));
  CHECK(contains(error(npy_bytes("<c8", "(1, 2)", std::string(16, 'a'))), "<c8"));
  CHECK(contains(error(npy_bytes("<i4", "(1, 2)", "abc")), "expected a file of 136 bytes"));
  CHECK(contains(error(npy_bytes("<i4", "(1, 2, oops)", "abc")), "a shape"));
  CHECK(contains(error(npy_bytes("<i4", "(2, 2)", std::string(16, 'a'), "True")), "Fortran"));
  CHECK(contains(error(npy_bytes("<f4", "(1, 2)", raw<float>({1, 2}))), "needs 2 int32"));
  CHECK(contains(error("\x93NUMPX"), ".npy"));
}

TEST_CASE("csv: headers, targets and delimiters are recognized") {
  const TempDir folder;
  write_file(folder / "a.csv", "\xef\xbb\xbfleft,label,right\r\n 1.5,3,+2\r\n\r\n\"-4\",0,1e2\r\n");
  write_gzip(folder / "b.csv.gz", "1;2;9\n3;4;8");
  const TensorSpec pair{"x", {2}};
  const auto named = open_train(folder, "train: {csv: {file: a.csv, target: label, header: true}}", pair);
  CHECK(read_all(*named, 0) == Values{1.5, 2, -4, 100});
  CHECK(read_all(*named, 1) == Values{3, 0});
  const auto last = open_train(folder, "train: {csv: {file: b.csv.gz, target: -1, delimiter: ';'}}", pair);
  CHECK(read_all(*last, 0) == Values{1, 2, 3, 4});
  CHECK(read_all(*last, 1) == Values{9, 8});
  // The target column is not an input, even if no targets are read.
  CHECK(read_all(*open_train(folder, "train: {csv: {file: b.csv.gz, target: 0, delimiter: ';'}}", pair, {}),
                 0) == Values{2, 9, 4, 8});
}

TEST_CASE("csv: errors name line and column") {
  const TempDir folder;
  const auto error = [&](const std::string& text, const std::string& target = "-1") {
    write_file(folder / "a.csv", text);
    return open_error(folder, "train: {csv: {file: a.csv, target: " + target + "}}", {"x", {2}});
  };
  CHECK(error("1,2,3\n").empty());
  CHECK(contains(error("1,2,3\n1,two,3\n"), "a.csv:2:3: expected a finite number, found 'two'"));
  CHECK(contains(error("1,2,3\n1,2,3.5\n"), "a.csv:2:5: expected an integer (int32), found '3.5'"));
  CHECK(contains(error("1,2,3\n1,2\n"), "a.csv:2: expected 3 values as in the first line, found 2"));
  CHECK(contains(error("1,nan,3\n"), "a.csv:1:3"));
  CHECK(contains(error("1,,3\n"), "a.csv:1:3"));
  CHECK(contains(error("1,1e300,3\n"), "a.csv:1:3: expected a finite number"));
  CHECK(contains(error("\n\n"), "expected rows"));
  CHECK(contains(error("1,2,3\n", "3"), "from -3 to 2, found 3"));
  CHECK(contains(error("1,2,3\n", "label"), "header"));
}

TEST_CASE("cifar10: planes are read as channels") {
  const TempDir folder;
  std::string record(1 + 3 * 1024, '\0');
  record[0] = 6;
  record[1 + 5] = 10;         // red of pixel 5
  record[1 + 1024 + 5] = 20;  // green
  record[1 + 2048 + 5] = 30;  // blue
  std::string other = record;
  other[0] = 9;
  write_file(folder / "a.bin", record + record);
  write_file(folder / "b.bin", other);
  const std::string yaml = "train: {cifar10: {files: [a.bin, b.bin]}}";
  const auto data = open_train(folder, yaml, {"image", {32, 32, 3}});
  CHECK(read_all(*data, 1) == Values{6, 6, 9});
  const Values image = read_rows(*data, {2}, 0);
  CHECK(Values(image.begin() + 15, image.begin() + 18) == Values{10, 20, 30});
  CHECK(image[14] == 0);
  write_file(folder / "b.bin", other + "x");
  CHECK(contains(
      open_error(folder, yaml, {"image", {32, 32, 3}}),
      "must be a positive multiple of 3073 bytes (the size of a record), but the file has 3074 bytes"));
}

TEST_CASE("synthetic: each value depends only on the seed, the row and the position in the row") {
  const TempDir folder;
  const TensorSpec input{"x", {100}}, tokens{"t", {9}, DType::int32}, truth{"y", {1}};
  const auto uniform =
      open_train(folder, "train: {synthetic: {samples: 50, target: {classes: 3}, seed: 4}}", input);
  CHECK(uniform->in_memory());
  const Values all = read_all(*uniform, 0);
  CHECK(*std::min_element(all.begin(), all.end()) >= 0);
  CHECK(*std::max_element(all.begin(), all.end()) < 1);
  const Values row = read_rows(*uniform, {17}, 0);
  CHECK(row == Values(all.begin() + 1700, all.begin() + 1800));
  double sum = 0;
  for (const double value : all) sum += value;
  CHECK(sum / 5000 == doctest::Approx(0.5).epsilon(0.03));
  const Values labels = read_all(*uniform, 1);
  CHECK(*std::max_element(labels.begin(), labels.end()) == 2);
  CHECK(*std::min_element(labels.begin(), labels.end()) == 0);
  const auto other =
      open_train(folder, "train: {synthetic: {samples: 50, target: {classes: 3}, seed: 5}}", input);
  CHECK(read_all(*other, 0) != all);

  const auto normal = open_train(
      folder, "train: {synthetic: {samples: 100, input: {distribution: normal, mean: 3, stddev: 2}}}", input,
      {});
  double mean = 0, square = 0;
  for (const double value : read_all(*normal, 0)) {
    mean += value / 10000;
    square += value * value / 10000;
  }
  CHECK(mean == doctest::Approx(3).epsilon(0.03));
  CHECK(std::sqrt(square - mean * mean) == doctest::Approx(2).epsilon(0.03));

  const auto ints =
      open_train(folder, "train: {synthetic: {samples: 64, input: {low: -2, high: 3}, target: {classes: 2}}}",
                 tokens, {truth});
  const Values drawn = read_all(*ints, 0);
  CHECK(*std::min_element(drawn.begin(), drawn.end()) == -2);
  CHECK(*std::max_element(drawn.begin(), drawn.end()) == 2);
  CHECK(ints->columns()[1].dtype == DType::float32);
  CHECK(contains(open_error(folder, "train: {synthetic: {samples: 5}}", tokens, {}), "at least two"));
}

TEST_CASE("several inputs and targets are given by name") {
  const TempDir folder;
  write_file(folder / "a", idx_bytes({2, 2}, "abcd"));
  write_file(folder / "b", idx_bytes({2}, "AB"));
  write_file(folder / "long", idx_bytes({3}, "ABC"));
  const std::vector<TensorSpec> inputs{{"left", {2}}, {"right", {}}};
  const auto open = [&](const std::string& options, const std::vector<TensorSpec>& targets = {}) {
    const DatasetSpec spec = parse(folder, "train: {idx: {" + options + "}}");
    return open_split(spec, *spec.train, inputs, targets);
  };
  const auto data = open("inputs: {right: b, left: a}, targets: {one: b, two: a}",
                         {{"two", {2}, DType::int32}, {"one", {}, DType::int32}});
  CHECK(read_all(*data, 1) == Values{65, 66});
  CHECK(read_all(*data, 2) == Values{97, 98, 99, 100});
  CHECK(contains(error_of([&] { open("input: a"); }), "'left'"));
  CHECK(contains(error_of([&] { open("inputs: {left: a, right: b, rite: b}"); }), "'rite'"));
  CHECK(contains(error_of([&] { open("inputs: {left: a, right: long}"); }), "found 2 in"));
  CHECK(contains(error_of([&] { open("inputs: {left: a, right: b}", {kLabel}); }), "'target'"));
}

TEST_CASE("several threads may read one data set") {
  const TempDir folder;
  std::string values;
  for (int i = 0; i < 4000; ++i) values += static_cast<char>(i % 251);
  write_file(folder / "x", idx_bytes({1000, 4}, values));
  for (const std::string cache : {"none", "memory"}) {
    const auto data = open_train(folder, "train: {idx: {input: x}}\ncache: " + cache, {"x", {4}}, {});
    const Values expected = read_all(*data, 0);
    std::vector<Values> found(4);
    std::vector<std::thread> threads;
    for (auto& mine : found) threads.emplace_back([&] { mine = read_all(*data, 0); });
    for (auto& thread : threads) thread.join();
    for (const auto& mine : found) CHECK(mine == expected);
  }
}

TEST_CASE("MNIST is read if it is present") {
  const char* variable = std::getenv("DTRAIN_DATA");
  std::string images;
  for (const std::string& root : {std::string(variable ? variable : ""), test::source_dir() + "/datasets",
                                  test::source_dir() + "/../shared/datasets"})
    if (images.empty() && std::filesystem::exists(root + "/mnist/t10k-images-idx3-ubyte.gz"))
      images = root + "/mnist";
  if (images.empty()) {
    MESSAGE("skipped: no mnist folder under $DTRAIN_DATA or datasets/");
    return;
  }
  const TempDir folder;
  const DatasetSpec spec = parse(folder, "root: " + images +
                                             "\n"
                                             "train: {idx: {input: train-images-idx3-ubyte.gz, target: "
                                             "train-labels-idx1-ubyte.gz}, rows: [0, 50000]}\n"
                                             "validation: {idx: {input: train-images-idx3-ubyte.gz, target: "
                                             "train-labels-idx1-ubyte.gz}, rows: [50000, 60000]}\n"
                                             "test: {idx: {input: t10k-images-idx3-ubyte.gz, target: "
                                             "t10k-labels-idx1-ubyte.gz}}\n"
                                             "transforms: [reshape: [784]]\ncache: memory\n");
  const TensorSpec input{"image", {784}};
  const auto train = open_split(spec, *spec.train, {input}, {kLabel});
  const auto validation = open_split(spec, *spec.validation, {input}, {kLabel});
  const auto test = open_split(spec, *spec.test, {input}, {kLabel});
  CHECK(train->size() == 50000);
  CHECK(validation->size() == 10000);
  CHECK(test->size() == 10000);
  CHECK(read_rows(*train, {0, 1, 2, 3, 4}, 1) == Values{5, 0, 4, 1, 9});
  CHECK(read_rows(*validation, {0, 1, 2, 3, 4}, 1) == Values{3, 8, 6, 9, 6});
  CHECK(read_rows(*test, {0, 1, 2, 3, 4}, 1) == Values{7, 2, 1, 0, 4});
}

}  // namespace dtrain::test
