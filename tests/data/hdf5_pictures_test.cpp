// Encoded images in HDF5 files, in three forms: as variable-length values, as rows of bytes, and as opaque
// elements.
#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <hdf5.h>

#include "hdf5/hdf5_heap.h"
#include "support.h"
#include "support/image_files.h"

namespace dtrain::test {

namespace {

const std::vector<TensorSpec> kInput{{"image", {4, 5, 3}, DType::float32}};
const std::vector<TensorSpec> kClass{{"", {}, DType::int32}};

Bytes picture(int number) {
  return png_of({4, 5, 3, Bytes(60, static_cast<uint8_t>(number))});
}

class File {
 public:
  explicit File(const std::string& path, hid_t properties = H5P_DEFAULT)
      : file_(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, properties, H5P_DEFAULT)) {}
  ~File() { H5Fclose(file_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void add(const char* name, hid_t type, const std::vector<hsize_t>& shape, const void* values,
           hid_t properties = H5P_DEFAULT) {
    const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
    const hid_t set = H5Dcreate2(file_, name, type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    if (values) H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    H5Dclose(set);
    H5Sclose(space);
  }
  /// Writes the images as a dataset of the type that h5py calls vlen_dtype(numpy.uint8).
  void add_variable(const char* name, std::vector<Bytes> pictures, hid_t element = H5T_NATIVE_UINT8,
                    hid_t properties = H5P_DEFAULT) {
    std::vector<hvl_t> rows;
    for (Bytes& one : pictures) rows.push_back({one.size(), one.data()});
    const hid_t type = H5Tvlen_create(element);
    add(name, type, {rows.size()}, rows.data(), properties);
    H5Tclose(type);
  }

 private:
  hid_t file_;
};

std::shared_ptr<const Dataset> open(const TempDir& folder, const std::string& input,
                                    const std::string& more = "") {
  const DatasetSpec spec = parse(
      folder, "train: {images: {hdf5: {file: a.h5, target: labels, input: " + input + "}" + more + "}}");
  return open_split(spec, *spec.train, kInput, kClass);
}

std::vector<double> firsts(const Dataset& data) {
  std::vector<double> all;
  for (int64_t i = 0; i < data.size(); ++i) all.push_back(read_rows(data, {i}, 0)[0]);
  return all;
}

/// Writes the same images in all three forms: variable-length, rows, and opaque elements.
void write_all(const std::string& path) {
  const std::vector<int64_t> labels{2, 0, 1};
  const std::vector<Bytes> pictures{picture(10), picture(200), picture(30)};
  constexpr size_t kWidth = 4096;
  Bytes rows;
  for (const Bytes& one : pictures) {
    rows.insert(rows.end(), one.begin(), one.end());
    rows.resize((rows.size() + kWidth - 1) / kWidth * kWidth);
  }
  File file(path);
  file.add("labels", H5T_NATIVE_INT64, {3}, labels.data());
  file.add("few", H5T_NATIVE_INT64, {2}, labels.data());
  file.add_variable("variable", pictures);
  file.add_variable("signed", pictures, H5T_NATIVE_INT8);
  file.add("rows", H5T_NATIVE_UINT8, {3, kWidth}, rows.data());
  file.add("pixels", H5T_NATIVE_UINT8, {3, 64, 64}, rows.data());
  file.add_variable("broken", {picture(10), {1, 2, 3}, {}});
  const hid_t opaque = H5Tcreate(H5T_OPAQUE, kWidth);
  H5Tset_tag(opaque, "numpy.void");
  file.add("opaque", opaque, {3}, rows.data());
  H5Tclose(opaque);
}

}  // namespace

TEST_CASE("encoded images in every kind of HDF5 dataset are read and decoded") {
  const TempDir folder;
  write_all(folder / "a.h5");
  for (const char* input : {"variable", "signed", "rows", "opaque"}) {
    CAPTURE(input);
    const auto data = open(folder, input);
    CHECK(firsts(*data) == std::vector<double>{10, 200, 30});
    CHECK(read_all(*data, 1) == std::vector<double>{2, 0, 1});
    CHECK(data->sample_id(1) == folder / "a.h5" + ":" + input + "[1]");
    CHECK_FALSE(data->in_memory());
  }
  const DatasetSpec spec = parse(folder, "train: {images: {hdf5: {file: a.h5, input: rows}}}");
  CHECK(firsts(*open_inputs(given(folder / "a.h5"), spec, kInput, {})) == std::vector<double>{10, 200, 30});
  CHECK(open(folder, "rows", ", class_names: [a, b, c]")->facts().source.class_names.at("target")[2] == "c");
}

TEST_CASE("a value that is not an encoded image is an error with its location") {
  const TempDir folder;
  write_all(folder / "a.h5");
  const auto error = [&](const std::string& input, const std::string& more = "") {
    return error_of([&] { open(folder, input, more); });
  };
  CHECK(contains(error("broken"),
                 "a.h5:broken[1]: expected a JPEG, PNG or BMP, found a file that is not an image"));
  CHECK(contains(error("pixels"), "a.h5:pixels: expected encoded images"));
  CHECK(contains(error("labels"), "a.h5:labels: expected encoded images"));
  CHECK(contains(error("none"), "a.h5: expected a dataset 'none', but 'none' does not exist"));
  const auto skipped = open(folder, "broken", ", on_error: skip");
  CHECK(read_all(*skipped, 1) == std::vector<double>{2});
  CHECK(contains(skipped->warnings().at(0), "2 of 3 files were left out"));
  const DatasetSpec few = parse(folder, "train: {images: {hdf5: {file: a.h5, input: rows, target: few}}}");
  CHECK(contains(error_of([&] { open_split(few, *few.train, kInput, kClass); }),
                 "expected a target for each of 3 images, found 2 in 'few'"));
  CHECK(contains(error_of([&] { parse(folder, "train: {images: {hdf5: {file: a.h5}}}"); }),
                 "give either 'input'"));
  CHECK(contains(
      error_of([&] { parse(folder, "train: {images: {hdf5: {file: a.h5, input: x}, directory: y}}"); }),
      "give one of 'directory'"));
}

TEST_CASE("a file with images that is changed during use is an error") {
  const TempDir folder;
  write_all(folder / "a.h5");
  const auto data = open(folder, "variable");
  const std::string bytes = read_file(folder / "a.h5");
  write_file(folder / "a.h5", bytes + "more");
  CHECK_THROWS_WITH_AS(firsts(*data), doctest::Contains("a.h5: the file was changed"), Error);
}

TEST_CASE("references are read from any storage, with any address size and after a user block") {
  const TempDir folder;
  const auto write = [&](hid_t whole) {
    const Hdf5Handle packed(H5Pcreate(H5P_DATASET_CREATE));
    const hsize_t chunk = 2;
    H5Pset_chunk(packed, 1, &chunk);
    H5Pset_shuffle(packed);
    H5Pset_deflate(packed, 6);
    File file(folder / "a.h5", whole);
    const std::vector<int64_t> labels{2, 0, 1};
    file.add("labels", H5T_NATIVE_INT64, {3}, labels.data());
    file.add_variable("packed", {picture(10), picture(200), picture(30)}, H5T_NATIVE_UINT8, packed);
  };
  {
    const Hdf5Handle whole(H5Pcreate(H5P_FILE_CREATE));
    H5Pset_userblock(whole, 1024);
    H5Pset_sizes(whole, 4, 4);
    write(whole);
  }
  CHECK(firsts(*open(folder, "packed")) == std::vector<double>{10, 200, 30});

  write(H5P_DEFAULT);
  std::string bytes = read_file(folder / "a.h5");
  {
    const Hdf5Session session;
    const Hdf5Handle file(H5Fopen((folder / "a.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT)),
        set(H5Dopen2(file, "packed", H5P_DEFAULT)), space(H5Dget_space(set));
    hsize_t place = 0, size = 0;
    haddr_t address = 0;
    REQUIRE(H5Dget_chunk_info(set, space, 0, &place, nullptr, &address, &size) >= 0);
    bytes.replace(static_cast<size_t>(address), static_cast<size_t>(size), std::string(size, '\1'));
  }
  write_file(folder / "a.h5", bytes);  // a chunk with two references cannot be decompressed
  CHECK(contains(error_of([&] { open(folder, "packed"); }), "a.h5:packed: rows 0 to 0 cannot be read"));
  CHECK(firsts(*open(folder, "packed", ", on_error: skip")) == std::vector<double>{30});
}

namespace {

/// A file with three images in one collection of the global heap. The tests damage the heap entry of the
/// second image.
struct Damaged {
  TempDir folder;
  std::string bytes;
  size_t collection = 0, second = 0;  // offsets of the collection and of the second entry

  Damaged() {
    const std::vector<int64_t> labels{2, 0, 1};
    {
      File file(folder / "a.h5");
      file.add("labels", H5T_NATIVE_INT64, {3}, labels.data());
      file.add_variable("p", {picture(10), picture(200), picture(30)});
    }
    bytes = read_file(folder / "a.h5");
    collection = bytes.find(std::string("GCOL\1\0\0\0", 8));
    second = collection + 16 + 16 + (picture(10).size() + 7) / 8 * 8;
    REQUIRE(bytes.substr(second, 2) == std::string("\2\0", 2));
  }

  /// Writes a copy of the file in which `value` replaces the little-endian number of `count` bytes at offset
  /// `at`.
  void put(size_t at, uint64_t value, size_t count) const {
    std::string damaged = bytes;
    for (size_t i = 0; i < count; ++i, value >>= 8) damaged[at + i] = static_cast<char>(value);
    write_file(folder / "a.h5", damaged);
  }
  std::string error() const {
    return error_of([&] { open(folder, "p"); });
  }
  std::vector<double> left() const { return firsts(*open(folder, "p", ", on_error: skip")); }
};

}  // namespace

TEST_CASE("if a global heap is damaged, reading is an error, or the images after the damage are skipped") {
  const Damaged file;
  const size_t size = file.second + 8;
  CHECK(firsts(*open(file.folder, "p")) == std::vector<double>{10, 200, 30});

  file.put(file.second, 0, 16);  // the entry becomes free space of size 0, on which libhdf5 loops forever
  CHECK(contains(file.error(),
                 "a.h5:p[1]: expected an object or free space of a valid size in the global heap collection "
                 "of 4096 bytes"));
  CHECK(contains(file.error(), "found free space of 0 bytes"));
  CHECK(contains(file.error(), "set 'on_error: skip'"));
  CHECK(file.left() == std::vector<double>{10});

  file.put(file.second, 0, 2);  // the entry becomes free space whose end is in the middle of another entry
  CHECK(file.left() == std::vector<double>{10});

  for (const uint64_t wrong : {uint64_t{4096}, ~uint64_t{0}, ~uint64_t{15}, ~uint64_t{0} >> 1}) {
    CAPTURE(wrong);
    file.put(size, wrong, 8);
    CHECK(contains(
        file.error(),
        "a.h5:p[1]: expected an object or free space of a valid size in the global heap collection"));
    CHECK(contains(file.error(), fmt::format("found an object of {} bytes", wrong)));
    CHECK(file.left() == std::vector<double>{10});
  }

  file.put(size, picture(200).size() + 1, 8);  // libhdf5 would overrun its buffer
  CHECK(contains(
      file.error(),
      fmt::format("expected an object of {} bytes (the length in the reference), found an object of {}",
                  picture(200).size(), picture(200).size() + 1)));

  file.put(file.second, 77, 2);
  CHECK(contains(file.error(), "a.h5:p[1]: expected object 2 in the global heap collection"));
  CHECK(file.left() == std::vector<double>{10, 30});
}

TEST_CASE("a heap collection outside the file is an error") {
  const Damaged file;
  for (const uint64_t wrong : {uint64_t{15}, uint64_t{0}, uint64_t{1} << 20, ~uint64_t{0}}) {
    CAPTURE(wrong);
    file.put(file.collection + 8, wrong, 8);
    CHECK(contains(file.error(), "a.h5:p[0]: expected a global heap collection that ends within the file"));
    CHECK(contains(file.error(), fmt::format("found a collection of {} bytes", wrong)));
  }
  file.put(file.collection + 4, 2, 1);
  CHECK(contains(file.error(), "expected a global heap collection (GCOL, version 1)"));

  std::string address(8, '\0');
  for (size_t i = 0; i < 8; ++i) address[i] = static_cast<char>(file.collection >> (8 * i));
  const size_t reference = file.bytes.find(address + std::string("\2\0\0\0", 4));
  REQUIRE(reference != std::string::npos);
  for (const uint64_t wrong :
       {uint64_t{file.bytes.size() - 15}, uint64_t{file.bytes.size()} + 1, ~uint64_t{0}}) {
    CAPTURE(wrong);
    file.put(reference, wrong, 8);
    CHECK(contains(file.error(), fmt::format("found a reference to byte {}", wrong)));
    CHECK(file.left() == std::vector<double>{10, 30});
  }
  file.put(reference, 0, 8);
  CHECK(contains(file.error(), "a.h5:p[1]: expected a JPEG, PNG or BMP, found an empty file"));
}

TEST_CASE("a value is read without reading the values before it") {
  const TempDir folder;
  constexpr size_t kLarge = 1 << 20;
  const std::string path = folder / "a.h5";
  File(path).add_variable("p", {Bytes(kLarge, 1), Bytes(kLarge, 2), Bytes(2000, 3), Bytes(1000, 4)});
  const Hdf5Session session;
  const Hdf5Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT)),
      set(H5Dopen2(file, "p", H5P_DEFAULT));
  std::ifstream stream(path, std::ios::binary);
  size_t calls = 0, read = 0;
  const Hdf5Heap heap(file, path, static_cast<int64_t>(std::filesystem::file_size(path)),
                      [&](int64_t offset, void* dst, size_t bytes) {
                        ++calls;
                        read += bytes;
                        stream.seekg(offset);
                        REQUIRE(stream.read(static_cast<char*>(dst), static_cast<std::streamsize>(bytes)));
                      });
  std::vector<std::byte> references(4 * heap.reference_bytes());
  {
    const Hdf5References as_they_are;
    REQUIRE(H5Dread(set, heap.reference_type(), H5S_ALL, H5S_ALL, H5P_DEFAULT, references.data()) >= 0);
  }
  const std::vector<size_t> lengths{kLarge, kLarge, 2000, 1000};
  for (size_t i = 0; i < lengths.size(); ++i) {
    const auto reference = std::span(references).subspan(i * heap.reference_bytes(), heap.reference_bytes());
    calls = read = 0;
    CHECK(heap.find(reference, "it").bytes == static_cast<int64_t>(lengths[i]));
    CHECK(calls == 1);
    CHECK(read <= 4096);
    CHECK(heap.text(reference, "it") == std::string(lengths[i], static_cast<char>(i + 1)));
  }
}

TEST_CASE("a fill value is not read from a damaged heap") {
  const TempDir folder;
  const std::string path = folder / "a.h5";
  {
    const Hdf5Handle filled(H5Pcreate(H5P_DATASET_CREATE)), text(H5Tcopy(H5T_C_S1)),
        variable(H5Tvlen_create(H5T_NATIVE_UINT8)), packed(H5Pcreate(H5P_DATASET_CREATE));
    H5Tset_size(text, H5T_VARIABLE);
    const char* words = "a text that stands for what was not written";
    H5Pset_fill_value(filled, text, &words);
    Bytes bytes = picture(50);
    const hvl_t fill{bytes.size(), bytes.data()};
    const hsize_t chunk = 2;
    H5Pset_chunk(packed, 1, &chunk);
    H5Pset_deflate(packed, 6);
    H5Pset_fill_value(packed, variable, &fill);
    const std::vector<int64_t> labels{2, 0, 1};
    File file(path);
    file.add("labels", H5T_NATIVE_INT64, {3}, labels.data());
    file.add("texts", text, {3}, nullptr, filled);
    file.add("pictures", variable, {3}, nullptr, packed);
  }
  std::string bytes = read_file(path);
  for (size_t at = bytes.find("GCOL"); at != std::string::npos; at = bytes.find("GCOL", at + 1))
    for (size_t i = 16; i < 32; ++i) bytes[at + i] = '\0';  // object 0, of size 0
  write_file(path, bytes);
  CHECK(contains(error_of([&] {
                   const DatasetSpec spec =
                       parse(folder, "train: {hdf5: {file: a.h5, input: texts, target: labels}}");
                   open_split(spec, *spec.train, kInput, kClass);
                 }),
                 "a.h5:texts: expected integers or floating point numbers of at most 64 bits"));
  CHECK(contains(error_of([&] { open(folder, "pictures"); }), "a.h5:pictures[0]: expected a"));
}

}  // namespace dtrain::test
