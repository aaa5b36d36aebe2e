// Encoded pictures in HDF5: of variable length, in rows of bytes, as opaque elements.
#include <filesystem>

#include <doctest/doctest.h>
#include <hdf5.h>

#include "pictures.h"
#include "support.h"

namespace dtrain::test {

namespace {

const std::vector<TensorSpec> kInput{{"image", {4, 5, 3}, DType::float32}};
const std::vector<TensorSpec> kClass{{"", {}, DType::int32}};

Bytes picture(int number) {
  return png_of({4, 5, 3, Bytes(60, static_cast<uint8_t>(number))});
}

class File {
 public:
  explicit File(const std::string& path)
      : file_(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) {}
  ~File() { H5Fclose(file_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void add(const char* name, hid_t type, const std::vector<hsize_t>& shape, const void* values) {
    const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
    const hid_t set = H5Dcreate2(file_, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    H5Dclose(set);
    H5Sclose(space);
  }
  /// As h5py.vlen_dtype(numpy.uint8) has them.
  void add_variable(const char* name, std::vector<Bytes> pictures, hid_t element = H5T_NATIVE_UINT8) {
    std::vector<hvl_t> rows;
    for (Bytes& one : pictures) rows.push_back({one.size(), one.data()});
    const hid_t type = H5Tvlen_create(element);
    add(name, type, {rows.size()}, rows.data());
    H5Tclose(type);
  }

 private:
  hid_t file_;
};

std::shared_ptr<const Dataset> open(const TempFolder& folder, const std::string& input,
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

/// The same pictures, of variable length, in rows, and opaque.
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

TEST_CASE("encoded pictures of every form are read and decoded") {
  const TempFolder folder;
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
  CHECK(firsts(*open_inputs(folder / "a.h5", spec, kInput, {})) == std::vector<double>{10, 200, 30});
  CHECK(open(folder, "rows", ", class_names: [a, b, c]")->facts().source.class_names.at("target")[2] == "c");
}

TEST_CASE("what is no encoded picture is told with its place") {
  const TempFolder folder;
  write_all(folder / "a.h5");
  const auto error = [&](const std::string& input, const std::string& more = "") {
    return error_of([&] { open(folder, input, more); });
  };
  CHECK(contains(error("broken"), "a.h5:broken[1]: expected a JPEG, PNG or BMP, found no picture"));
  CHECK(contains(error("pixels"), "a.h5:pixels: expected encoded pictures"));
  CHECK(contains(error("labels"), "a.h5:labels: expected encoded pictures"));
  CHECK(contains(error("none"), "a.h5: expected a dataset 'none', found no 'none'"));
  const auto skipped = open(folder, "broken", ", on_error: skip");
  CHECK(read_all(*skipped, 1) == std::vector<double>{2});
  CHECK(contains(skipped->warnings().at(0), "2 of 3 files were left out"));
  const DatasetSpec few = parse(folder, "train: {images: {hdf5: {file: a.h5, input: rows, target: few}}}");
  CHECK(contains(error_of([&] { open_split(few, *few.train, kInput, kClass); }),
                 "expected a target for each of 3 pictures, found 2 in 'few'"));
  CHECK(contains(error_of([&] { parse(folder, "train: {images: {hdf5: {file: a.h5}}}"); }),
                 "give either 'input'"));
  CHECK(contains(
      error_of([&] { parse(folder, "train: {images: {hdf5: {file: a.h5, input: x}, directory: y}}"); }),
      "give one of 'directory'"));
}

TEST_CASE("a file of pictures that is written to is an error") {
  const TempFolder folder;
  write_all(folder / "a.h5");
  const auto data = open(folder, "variable");
  const std::string bytes = read_file(folder / "a.h5");
  write_file(folder / "a.h5", bytes + "more");
  CHECK_THROWS_WITH_AS(firsts(*data), doctest::Contains("a.h5: the file was changed"), Error);
}

}  // namespace dtrain::test
