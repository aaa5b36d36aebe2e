#include <fcntl.h>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <hdf5.h>

#include "data/support.h"

namespace dtrain::test {

namespace {

using Values = std::vector<double>;

void add(hid_t file, const char* name, hid_t type, const std::vector<hsize_t>& shape, const void* values,
         hid_t properties = H5P_DEFAULT) {
  const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
  const hid_t set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
  if (values) H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
  H5Dclose(set);
  H5Sclose(space);
}

hid_t create(const std::string& path) {
  return H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
}

std::shared_ptr<const Dataset> open(const TempDir& folder, const std::string& options,
                                    const TensorSpec& input, const std::vector<TensorSpec>& targets = {}) {
  const DatasetSpec spec = parse(folder, "train: {hdf5: {file: a.h5, " + options + "}}");
  return open_split(spec, *spec.train, {input}, targets);
}

}  // namespace

TEST_CASE("hdf5: predict finds inputs by the names in training, or uses the only dataset") {
  const TempDir folder;
  const std::vector<float> images{1, 2, 3, 4}, labels{5, 6};
  const hid_t both = create(folder / "both.h5");
  H5Gclose(H5Gcreate2(both, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  add(both, "group/images", H5T_NATIVE_FLOAT, {2, 2}, images.data());
  add(both, "labels", H5T_NATIVE_FLOAT, {2}, labels.data());
  add(both, "more", H5T_NATIVE_FLOAT, {2}, labels.data());
  H5Fclose(both);
  const hid_t lone = create(folder / "one.h5");
  add(lone, "any", H5T_NATIVE_FLOAT, {2, 2}, images.data());
  H5Fclose(lone);
  const DatasetSpec spec =
      parse(folder, "train: {hdf5: {file: both.h5, input: group/images, target: labels}}");
  for (const char* name : {"both.h5", "one.h5"}) {
    CAPTURE(name);
    CHECK(read_all(*open_inputs(given(folder / name), spec, {{"x", {2}}}, {}), 0) == Values{1, 2, 3, 4});
  }
}

TEST_CASE("hdf5: slices of datasets of every type are read") {
  const TempDir folder;
  const hid_t file = create(folder / "a.h5");
  const std::vector<double> images{1, 2, 3, 4, 5, 6};
  const std::vector<int64_t> labels{7, 8, 9}, large{1, 2, int64_t{1} << 33};
  const std::vector<uint8_t> bytes{200, 201, 202};
  H5Gclose(H5Gcreate2(file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  add(file, "group/images", H5T_NATIVE_DOUBLE, {3, 2}, images.data());
  add(file, "labels", H5T_NATIVE_INT64, {3}, labels.data());
  add(file, "large", H5T_NATIVE_INT64, {3}, large.data());
  const hid_t chunked = H5Pcreate(H5P_DATASET_CREATE);
  const hsize_t chunk = 2;
  H5Pset_chunk(chunked, 1, &chunk);
  H5Pset_deflate(chunked, 6);
  add(file, "bytes", H5T_NATIVE_UINT8, {3}, bytes.data(), chunked);
  H5Pclose(chunked);
  H5Lcreate_external("/etc/hostname", "/", file, "away", H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(file);

  const TensorSpec pair{"x", {2}}, one{"x", {}, DType::int32};
  const auto data = open(folder, "input: group/images, target: labels", pair, {{"y", {}, DType::int32}});
  CHECK(data->size() == 3);
  CHECK_FALSE(data->in_memory());
  CHECK(read_rows(*data, {2, 0, 1, 1}, 0) == Values{5, 6, 1, 2, 3, 4, 3, 4});
  CHECK(read_rows(*data, {2, 0}, 1) == Values{9, 7});
  CHECK(read_rows(*open(folder, "input: bytes", one), {2, 1, 0}, 0) == Values{202, 201, 200});
  CHECK(contains(error_of([&] { read_all(*open(folder, "input: large", one), 0); }),
                 "out of the range of int32"));
  CHECK(contains(error_of([&] { open(folder, "input: nothing", one); }), "expected a dataset 'nothing'"));
  CHECK(contains(error_of([&] { open(folder, "input: group", one); }),
                 "expected a dataset, found another object"));
  CHECK(contains(error_of([&] { open(folder, "input: away", one); }), "is a soft or external link"));
}

TEST_CASE("hdf5: numbers of any byte order and size are read, directly or by the library") {
  const TempDir folder;
  const std::vector<int32_t> values{1, -2, 300, 4, 5, -60};
  const Values expected(values.begin(), values.end());
  const std::vector<hid_t> types{H5T_STD_I16BE,  H5T_STD_I16LE, H5T_STD_I32BE,  H5T_STD_I32LE,
                                 H5T_STD_I64BE,  H5T_STD_I64LE, H5T_IEEE_F32BE, H5T_IEEE_F32LE,
                                 H5T_IEEE_F64BE, H5T_IEEE_F64LE};
  for (const hid_t type : types) {
    for (const bool in_chunks : {false, true}) {
      const hid_t file = create(folder / "a.h5"), properties = H5Pcreate(H5P_DATASET_CREATE);
      const hsize_t shape[2] = {3, 2}, chunk[2] = {2, 2};
      if (in_chunks) H5Pset_chunk(properties, 2, chunk);
      const hid_t space = H5Screate_simple(2, shape, nullptr);
      const hid_t set = H5Dcreate2(file, "x", type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
      H5Dwrite(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
      H5Dclose(set);
      H5Sclose(space);
      H5Pclose(properties);
      H5Fclose(file);
      const auto data = open(folder, "input: x", {"x", {2}});
      CHECK(read_all(*data, 0) == expected);
      CHECK(read_rows(*data, {2, 0}, 0) == Values{5, -60, 1, -2});
    }
  }
}

TEST_CASE("hdf5: missing filters, truncated, locked and damaged files are errors, and nothing is printed") {
  const TempDir folder;
  const TensorSpec input{"x", {}};
  const auto error = [&] { return error_of([&] { read_all(*open(folder, "input: x", input), 0); }); };
  const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
  const hsize_t chunk = 500;
  const std::vector<float> values(2000, 1.5f);
  H5Pset_chunk(properties, 1, &chunk);
  const hid_t lzf = H5Pcopy(properties);
  H5Pset_filter(lzf, 32000, H5Z_FLAG_OPTIONAL, 0, nullptr);
  hid_t file = create(folder / "a.h5");
  add(file, "x", H5T_NATIVE_FLOAT, {2000}, values.data(), lzf);
  H5Fclose(file);
  CHECK(contains(error(), "a.h5:x: the data are stored with the filter 32000"));

  H5Pset_deflate(properties, 6);
  file = create(folder / "a.h5");
  add(file, "x", H5T_NATIVE_FLOAT, {2000}, values.data(), properties);
  H5Fclose(file);
  CHECK(error().empty());
  H5Pclose(lzf);
  H5Pclose(properties);
  const std::string good = read_file(folder / "a.h5");
  const int other = ::open((folder / "a.h5").c_str(), O_RDWR);
  ::flock(other, LOCK_EX);
  CHECK(contains(error(), "another program has the file open for writing"));
  ::close(other);
  write_file(folder / "a.h5", good.substr(0, good.size() / 2));
  CHECK(contains(error(), "found a truncated one"));

  // Damages the compressed data of the last chunk. The thread that reads this chunk has not called libhdf5
  // before.
  std::string damaged = good;
  const size_t at = damaged.rfind("\x78\x9c");
  REQUIRE(at != std::string::npos);
  damaged.replace(at + 2, 8, 8, '\xff');
  write_file(folder / "a.h5", damaged);
  const int before = ::dup(2), printed = ::open((folder / "printed").c_str(), O_CREAT | O_WRONLY, 0600);
  ::dup2(printed, 2);
  std::string message;
  std::thread([&] { message = error(); }).join();
  ::dup2(before, 2);
  ::close(before);
  ::close(printed);
  CHECK(contains(message, "cannot be read, because the data is truncated or damaged"));
  CHECK(read_file(folder / "printed").empty());
}

TEST_CASE("hdf5: a chunk of the wrong size is an error") {
  const TempDir folder;
  const TensorSpec input{"x", {}};
  const std::vector<float> values(2000, 1.5f);
  for (const int checksum : {0, 1, 2}) {  // no checksum, before deflate, after deflate
    CAPTURE(checksum);
    const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk = 0x123;
    H5Pset_chunk(properties, 1, &chunk);
    H5Pset_shuffle(properties);
    if (checksum == 1) H5Pset_fletcher32(properties);
    H5Pset_deflate(properties, 6);
    if (checksum == 2) H5Pset_fletcher32(properties);
    const hid_t file = create(folder / "a.h5");
    add(file, "x", H5T_NATIVE_FLOAT, {2000}, values.data(), properties);
    H5Fclose(file);
    H5Pclose(properties);
    CHECK(read_all(*open(folder, "input: x", input), 0).size() == 2000);

    // The extent of the chunk is stored in the file before the size of an element. The test damages the
    // extent.
    std::string damaged = read_file(folder / "a.h5");
    const size_t at = damaged.find(std::string("\x23\x01\0\0\x04\0\0\0", 8));
    REQUIRE(at != std::string::npos);
    damaged[at + 1] = '\x05';
    write_file(folder / "a.h5", damaged);
    const std::string message = error_of([&] { read_all(*open(folder, "input: x", input), 0); });
    // From version 1.14 on, libhdf5 detects the damage itself, when it reads the index or the data.
    if (contains(message, "cannot be read, because the data is truncated or damaged")) continue;
    if (contains(message, "a.h5:x: the chunk index of this dataset is damaged")) continue;
    const int added = checksum == 1 ? 4 : 0;
    CHECK(contains(message,
                   fmt::format("a.h5:x: a chunk of this dataset must have {} bytes", 4 * 0x523 + added)));
    CHECK(contains(message, fmt::format("but has {} bytes; the file is damaged", 4 * 0x123 + added)));
  }
}

TEST_CASE("hdf5: a chunk is never read as zeros because of a flipped bit in the chunk index") {
  const TempDir folder;
  const TensorSpec input{"x", {}};
  const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
  const hsize_t chunk = 100;
  H5Pset_chunk(properties, 1, &chunk);
  H5Pset_deflate(properties, 1);
  std::vector<float> values(800);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
  hid_t file = create(folder / "a.h5");
  add(file, "x", H5T_NATIVE_FLOAT, {800}, values.data(), properties);
  H5Fclose(file);
  const std::string good = read_file(folder / "a.h5");
  const Values expected(values.begin(), values.end());
  // A node of the chunk index has a signature, the type (1), a level, the number of entries, and the
  // addresses of two siblings. Then follow, for each chunk, a key and an address. A key has the size, the
  // filters, and the offset along each axis and within an element.
  const size_t node = good.find(std::string("TREE\1", 5));
  REQUIRE(node != std::string::npos);
  int reported = 0;
  for (size_t bit = 6 * 8; bit < (24 + 8 * 32) * 8; ++bit) {
    const size_t at = bit / 8;
    const size_t in_key = at < 24 ? 0 : (at - 24) % 32;
    if ((at >= 8 && at < 24) || (at >= 24 && in_key < 8) || (at >= 24 && in_key >= 16)) continue;
    CAPTURE(at);
    CAPTURE(bit % 8);
    std::string damaged = good;
    damaged[node + at] = static_cast<char>(damaged[node + at] ^ (1 << bit % 8));
    write_file(folder / "a.h5", damaged);
    Values found;
    const std::string message = error_of([&] { found = read_all(*open(folder, "input: x", input), 0); });
    if (message.empty()) CHECK(found == expected);
    reported += message.empty() ? 0 : 1;
  }
  CHECK(reported > 100);

  // Reading chunks that were never written is an error, unless the dataset has a fill value.
  const auto unwritten = [&](hid_t more) -> std::string {
    file = create(folder / "a.h5");
    add(file, "x", H5T_NATIVE_FLOAT, {800}, nullptr, more);
    H5Fclose(file);
    Values found;
    const std::string message = error_of([&] { found = read_all(*open(folder, "input: x", input), 0); });
    return found == Values(800, 7) ? "sevens" : message;
  };
  CHECK(contains(unwritten(properties),
                 "a.h5:x: the number of chunks of this dataset must be 8, but the file contains only 0"));
  const float seven = 7;
  H5Pset_fill_value(properties, H5T_NATIVE_FLOAT, &seven);
  CHECK(unwritten(properties) == "sevens");
  H5Pclose(properties);
}

TEST_CASE("hdf5: a file of another format is an error") {
  const TempDir folder;
  const TensorSpec input{"x", {}};
  write_file(folder / "a.h5", "label,text\n");
  CHECK(contains(error_of([&] { open(folder, "input: x", input); }), "expected an HDF5 file"));
  std::filesystem::remove(folder / "a.h5");
  CHECK(contains(error_of([&] { open(folder, "input: x", input); }), "no such file"));
  const hid_t file = create(folder / "a.h5");
  add(file, "huge", H5T_NATIVE_FLOAT, {hsize_t{1} << 40, 1 << 30}, nullptr);
  H5Fclose(file);
  CHECK(contains(error_of([&] { open(folder, "input: huge", input); }), "fits in memory"));
}

TEST_CASE("predict reads inputs of any format, and recognizes the format by the content") {
  const TempDir folder;
  const TensorSpec pair{"x", {2}}, other{"z", {}};
  const Values expected{1, 2, 3, 4};
  const std::vector<float> values{1, 2, 3, 4};
  const hid_t file = create(folder / "one.h5");
  add(file, "whatever", H5T_NATIVE_FLOAT, {2, 2}, values.data());
  H5Fclose(file);
  const hid_t both = create(folder / "two.h5");
  add(both, "x", H5T_NATIVE_FLOAT, {2, 2}, values.data());
  add(both, "z", H5T_NATIVE_FLOAT, {2}, values.data());
  H5Fclose(both);
  write_file(folder / "a.npy", npy_bytes("<f4", "(2, 2)", raw(values)));
  write_file(folder / "a.csv", "left,right\n1,2\n3,4\n");
  write_gzip(folder / "b.csv.gz", "1,2\n3,4\n");
  write_gzip(folder / "images-idx2-ubyte.gz", idx_bytes({2, 2}, "\x01\x02\x03\x04"));
  for (const std::string name : {"one.h5", "a.npy", "a.csv", "b.csv.gz", "images-idx2-ubyte.gz"}) {
    CAPTURE(name);
    CHECK(read_all(*open_inputs(given(folder / name), {}, {pair}, {}), 0) == expected);
  }
  CHECK(read_all(*open_inputs(given(folder / "two.h5"), {}, {other, pair}, {}), 1) == expected);
  CHECK(contains(error_of([&] {
                   open_inputs(given(folder / "a.npy"), {}, {pair, other}, {});
                 }),
                 "the model has 2 inputs, so the file must be an HDF5 file"));
  const DatasetSpec spec =
      parse(folder, "train: {synthetic: {samples: 1}}\ntransforms: [rescale: {scale: 2}, one_hot: 5]");
  CHECK(read_all(*open_inputs(given(folder / "a.csv"), spec, {pair}, {}), 0) == Values{2, 4, 6, 8});
  // An HDF5 file may begin with a user block of any content. The user block of this file has only zeros.
  const hid_t blocked = H5Pcreate(H5P_FILE_CREATE);
  H5Pset_userblock(blocked, 1024);
  const hid_t behind = H5Fcreate((folder / "block.h5").c_str(), H5F_ACC_TRUNC, blocked, H5P_DEFAULT);
  add(behind, "whatever", H5T_NATIVE_FLOAT, {2, 2}, values.data());
  H5Fclose(behind);
  H5Pclose(blocked);
  CHECK(read_all(*open_inputs(given(folder / "block.h5"), {}, {pair}, {}), 0) == expected);
  // An icon also begins with two zero bytes, like an IDX file.
  write_file(folder / "a.ico", std::string("\0\0\1\0\1\0\x10\x10", 8) + std::string(200, 'x'));
  CHECK(contains(error_of([&] {
                   read_all(*open_inputs(given(folder / "a.ico"), {}, {{"x", {4, 4, 3}}}, {}), 0);
                 }),
                 "found an icon (.ico)"));
  write_file(folder / "none", "");
  CHECK(contains(error_of([&] { open_inputs(given(folder / "none"), {}, {pair}, {}); }),
                 "none: no data found"));
}

}  // namespace dtrain::test
