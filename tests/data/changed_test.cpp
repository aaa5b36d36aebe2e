// Files that change while dtrain uses them.
#include <chrono>
#include <functional>

#include <doctest/doctest.h>
#include <hdf5.h>

#include "data/support.h"
#include "support/image_files.h"

namespace dtrain::test {

namespace {

namespace fs = std::filesystem;

constexpr int kRows = 4000, kColumns = 32;

std::vector<float> numbers() {
  std::vector<float> values(kRows * kColumns);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000 + 1);
  return values;
}

void write_npy(const std::string& path) {
  write_file(path, npy_bytes("<f4", "(4000, 32)", raw(numbers())));
}

void write_hdf5(const std::string& path, bool in_chunks) {
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hsize_t shape[2] = {kRows, kColumns}, chunk[2] = {100, kColumns};
  const hid_t space = H5Screate_simple(2, shape, nullptr), properties = H5Pcreate(H5P_DATASET_CREATE);
  if (in_chunks) H5Pset_chunk(properties, 2, chunk);
  const hid_t set = H5Dcreate2(file, "x", H5T_IEEE_F32LE, space, H5P_DEFAULT, properties, H5P_DEFAULT);
  H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers().data());
  H5Dclose(set);
  H5Pclose(properties);
  H5Sclose(space);
  H5Fclose(file);
}

struct Source {
  std::string name, yaml;
  std::function<void(const TempDir&)> write;
  std::string file = "x";  // file that changes
};

const std::vector<Source>& sources() {
  static const std::vector<Source> all{
      {"npy", "{npy: {input: x}}", [](const TempDir& folder) { write_npy(folder / "x"); }},
      {"npy of another type", "{npy: {input: x}}",
       [](const TempDir& folder) {
         const std::vector<float> values = numbers();
         write_file(folder / "x",
                    npy_bytes("<f8", "(4000, 32)", raw(std::vector<double>(values.begin(), values.end()))));
       }},
      {"idx", "{idx: {input: x}}",
       [](const TempDir& folder) {
         write_file(folder / "x", idx_bytes({kRows, kColumns}, std::string(kRows * kColumns, 'a')));
       }},
      {"hdf5", "{hdf5: {file: x, input: x}}", [](const TempDir& folder) { write_hdf5(folder / "x", false); }},
      {"hdf5 in chunks", "{hdf5: {file: x, input: x}}",
       [](const TempDir& folder) { write_hdf5(folder / "x", true); }},
      {"a cache file", "{npy: {input: x}}\ncache: {file: kept}",
       [](const TempDir& folder) { write_npy(folder / "x"); }, "kept.train"},
  };
  return all;
}

std::shared_ptr<const Dataset> open(const TempDir& folder, const Source& source) {
  const DatasetSpec spec = parse(folder, "train: " + source.yaml);
  return open_split(spec, *spec.train, {{"x", {kColumns}}}, {});
}

/// Returns the message of an Error (not UserError) thrown while reading.
std::string failure_of(const std::function<void()>& read) {
  try {
    read();
  } catch (const UserError& error) {
    return std::string("UserError: ") + error.what();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a file that is truncated, extended or written to while it is in use is an error") {
  for (const Source& source : sources()) {
    CAPTURE(source.name);
    for (const std::string change : {"short", "header", "empty", "grown", "written", "replaced"}) {
      CAPTURE(change);
      const TempDir folder;
      source.write(folder);
      const auto data = open(folder, source);
      const std::vector<int64_t> some{3999, 17, 2000, 2001};
      const std::vector<double> before = read_rows(*data, some, 0);
      const std::string path = folder / source.file;
      const auto size = fs::file_size(path);
      if (change == "short") fs::resize_file(path, size - 200000 / 2);
      if (change == "header") fs::resize_file(path, 100);
      if (change == "empty") fs::resize_file(path, 0);
      if (change == "grown") fs::resize_file(path, size + 1);
      if (change == "written") {
        const std::string bytes = read_file(path);
        write_file(path, bytes);
        fs::last_write_time(path, fs::file_time_type::clock::now() + std::chrono::seconds(5));
      }
      if (change == "replaced") {  // the data set has opened the old file, which still exists without a name
        write_file(folder / "other", "something else");
        fs::rename(folder / "other", path);
        CHECK(read_rows(*data, some, 0) == before);
        continue;
      }
      const std::string failure = failure_of([&] { read_rows(*data, some, 0); });
      CHECK(contains(failure, path));
      CHECK(contains(failure, "changed while it was in use"));
      CHECK_FALSE(contains(failure, "UserError"));
    }
  }
}

TEST_CASE("data in memory are not read again from the file") {
  const TempDir folder;
  write_npy(folder / "x");
  const DatasetSpec spec = parse(folder, "train: {npy: {input: x}}\ncache: memory");
  const auto data = open_split(spec, *spec.train, {{"x", {kColumns}}}, {});
  const std::vector<double> before = read_all(*data, 0);
  fs::resize_file(folder / "x", 0);
  CHECK(read_all(*data, 0) == before);
}

TEST_CASE("a cache is written again if images changed, even with equal modification times") {
  const TempDir folder;
  fs::create_directories(folder / "all/a");
  const std::string path = folder / "all/a/0.bmp";
  const auto write = [&](int number) {
    const Bytes bytes = bmp_of(gradient(4, 4, 3, number));
    write_file(path, {bytes.begin(), bytes.end()});
  };
  const auto read = [&] {
    const DatasetSpec spec = parse(folder, "train: {images: all}\ncache: {file: kept}");
    return read_all(*open_split(spec, *spec.train, {{"x", {4, 4, 3}}}, {{"", {}, DType::int32}}), 0);
  };
  write(1);
  const auto time = fs::last_write_time(path);
  const auto size = fs::file_size(path);
  const std::vector<double> before = read();
  CHECK(read() == before);
  write(2);
  fs::last_write_time(path, time);
  REQUIRE(fs::file_size(path) == size);
  CHECK(read() != before);
}

TEST_CASE("the identity of data depends on its content, not on its path") {
  const TempDir folder, elsewhere;
  write_npy(folder / "x");
  const auto identity = [](const TempDir& where, const std::string& yaml) {
    const DatasetSpec spec = parse(where, "train: " + yaml);
    return open_split(spec, *spec.train, {{"x", {kColumns}}}, {})->identity();
  };
  const DataIdentity before = identity(folder, "{npy: {input: x}}");
  CHECK(describe_change(before, before).empty());
  CHECK(describe_change(before, DataIdentity::from_json(Json::parse(before.to_json().dump()))).empty());
  fs::copy_file(folder / "x", elsewhere / "y");
  CHECK(describe_change(before, identity(elsewhere, "{npy: {input: y}}")).empty());
  CHECK(contains(describe_change(before, identity(folder, "{npy: {input: x}, rows: [0, 3000]}")),
                 "the rows are [0, 3000) (they were [0, 4000))"));
  std::string bytes = read_file(folder / "x");
  bytes[bytes.size() / 2] ^= 1;
  write_file(folder / "x", bytes);
  CHECK(describe_change(before, identity(folder, "{npy: {input: x}}")) == "x has different content");
  write_file(folder / "x", npy_bytes("<f4", "(1, 32)", raw(std::vector<float>(32, 1))));
  const std::string shorter = describe_change(before, identity(folder, "{npy: {input: x}}"));
  CHECK(contains(shorter, "x has 256 bytes (it had 512128)"));
  CHECK(contains(shorter, "the number of samples is 1 (it was 4000)"));

  const auto synthetic = [&](const std::string& seed) {
    return identity(folder, "{synthetic: {samples: 10, seed: " + seed + "}}");
  };
  CHECK(describe_change(synthetic("1"), synthetic("1")).empty());
  CHECK(contains(describe_change(synthetic("1"), synthetic("2")), "seed: 2"));
}

TEST_CASE("the digest of a large file covers parts of the file, including its beginning and its end") {
  const TempDir folder;
  std::string bytes(6 << 20, 'a');
  const auto digest = [&] {
    write_file(folder / "large", bytes);
    return identify_files({folder / "large"}).at(0).digest;
  };
  const std::string before = digest();
  for (const size_t at : {size_t{0}, bytes.size() - 1}) {
    bytes[at] = 'b';
    CHECK(digest() != before);
    bytes[at] = 'a';
  }
  CHECK(digest() == before);
  std::string other(bytes.size(), 'c');
  bytes.swap(other);
  CHECK(digest() != before);
}

}  // namespace dtrain::test
