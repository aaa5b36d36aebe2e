// Tests reading weights from checkpoints and from Keras's HDF5 files.
#include "interop/weight_file.h"

#include <string>
#include <sys/stat.h>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.h"
#include "hdf5/hdf5_session.h"
#include "interop/keras/files/weight_names.h"
#include "interop/keras/files/weights.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/temp_dir.h"

using namespace dtrain;

namespace {

/// Writes names as an attribute of fixed-length or variable-length strings.
void write_names(hid_t object, const std::string& attribute, const std::vector<std::string>& names,
                 bool variable) {
  const hsize_t count = names.size();
  const Hdf5Handle space(H5Screate_simple(1, &count, nullptr)), type(H5Tcopy(H5T_C_S1));
  constexpr size_t kBytes = 40;
  H5Tset_size(type, variable ? H5T_VARIABLE : kBytes);
  const Hdf5Handle written(H5Acreate2(object, attribute.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT));
  if (variable) {
    std::vector<const char*> texts;
    for (const std::string& name : names) texts.push_back(name.c_str());
    H5Awrite(written, type, texts.data());
  } else {
    std::string texts;
    for (std::string name : names) {
      name.resize(kBytes);
      texts += name;
    }
    H5Awrite(written, type, texts.data());
  }
}

template <class T>
void write_array(hid_t group, const std::string& name, hid_t type, const std::vector<hsize_t>& shape,
                 const std::vector<T>& values) {
  const Hdf5Handle links(H5Pcreate(H5P_LINK_CREATE));
  H5Pset_create_intermediate_group(links, 1);
  const Hdf5Handle space(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr));
  const Hdf5Handle dataset(H5Dcreate2(group, name.c_str(), type, space, links, H5P_DEFAULT, H5P_DEFAULT));
  H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
}

struct KerasFile {
  test::TempDir directory;
  std::string path = directory / "keras.h5";

  /// Writes two layers as Keras saves a model: a dense layer, and a model with two dense layers.
  explicit KerasFile(bool variable) {
    const Hdf5Session session;
    const Hdf5Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    const Hdf5Handle root(H5Gcreate2(file, "model_weights", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    write_names(root, "layer_names", {"input", "dense_1", "inner"}, variable);
    const Hdf5Handle input(H5Gcreate2(root, "input", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    const hsize_t none = 0;
    const Hdf5Handle space(H5Screate_simple(1, &none, nullptr));
    const Hdf5Handle names(
        H5Acreate2(input, "weight_names", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT));
    const Hdf5Handle dense(H5Gcreate2(root, "dense_1", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    write_names(dense, "weight_names", {"dense_1_2/kernel:0", "dense_1_2/bias:0"}, variable);
    write_array<float>(dense, "dense_1_2/kernel:0", H5T_NATIVE_FLOAT, {2, 3}, {1, 2, 3, 4, 5, 6});
    write_array<double>(dense, "dense_1_2/bias:0", H5T_NATIVE_DOUBLE, {3}, {0.5, 0.25, 0.125});
    const Hdf5Handle inner(H5Gcreate2(root, "inner", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    write_names(inner, "weight_names", {"a/kernel:0", "b/kernel:0"}, variable);
    write_array<float>(inner, "a/kernel:0", H5T_NATIVE_FLOAT, {1}, {7});
    write_array<float>(inner, "b/kernel:0", H5T_NATIVE_FLOAT, {1}, {8});
  }
};

/// Returns the error message for a file; "" if it can be loaded.
std::string mistake(const std::string& path) {
  return test::error_of([&] { WeightFile::load(path); });
}

}  // namespace

TEST_CASE("Keras's weights have their layers' names") {
  for (const bool variable : {false, true}) {
    CAPTURE(variable);
    const KerasFile keras(variable);
    const WeightFile file = WeightFile::load(keras.path);
    std::string found;
    for (const ArrayRef& weight : file.weights()) {
      found += weight.name + " " + weight.shape.str() + ":";
      for (int64_t i = 0; i < weight.shape.elements(); ++i)
        found += " " + fmt::format("{}", static_cast<const float*>(weight.data)[i]);
      found += "\n";
    }
    CHECK(found ==
          "dense_1/kernel 2x3: 1 2 3 4 5 6\ndense_1/bias 3: 0.5 0.25 0.125\ninner/a/kernel 1: "
          "7\ninner/b/kernel 1: 8\n");
  }
}

TEST_CASE("an integer weight is listed without its values") {
  const test::TempDir directory;
  const std::string path = directory / "counts.h5";
  {
    const Hdf5Session session;
    const Hdf5Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    write_names(file, "layer_names", {"l"}, true);
    const Hdf5Handle layer(H5Gcreate2(file, "l", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    write_names(layer, "weight_names", {"count:0", "mean:0"}, true);
    write_array<int64_t>(layer, "count:0", H5T_NATIVE_INT64, {2}, {7, 8});
    write_array<float>(layer, "mean:0", H5T_NATIVE_FLOAT, {1}, {0.5f});
  }
  const WeightFile file = WeightFile::load(path);
  REQUIRE(file.weights().size() == 2);
  CHECK(file.weights()[0].name == "l/count");
  CHECK(file.weights()[0].shape == Shape{2});
  CHECK(file.weights()[0].data == nullptr);
  CHECK(*static_cast<const float*>(file.weights()[1].data) == 0.5f);
}

/// Writes a file with one layer whose weights have these names. Each weight is an array of one number.
/// Returns the file's path.
std::string file_of(const test::TempDir& directory, const std::vector<std::string>& names) {
  const Hdf5Session session;
  std::string path = directory / "names.h5";
  const Hdf5Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
  write_names(file, "layer_names", {"l"}, true);
  const Hdf5Handle layer(H5Gcreate2(file, "l", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  write_names(layer, "weight_names", names, true);
  for (const std::string& name : names)
    if (H5Lexists(layer, name.substr(0, name.find('/')).c_str(), H5P_DEFAULT) <= 0 ||
        H5Lexists(layer, name.c_str(), H5P_DEFAULT) <= 0)
      write_array<float>(layer, name, H5T_NATIVE_FLOAT, {1}, {1});
  return path;
}

TEST_CASE("weights of nested models have unique names") {
  const test::TempDir directory;
  const WeightFile file = WeightFile::load(
      file_of(directory, {"outer/enc/dense/kernel:0", "outer/dec/dense/kernel:0", "outer/dec/dense/bias:0"}));
  std::vector<std::string> names;
  for (const ArrayRef& weight : file.weights()) names.push_back(weight.name);
  CHECK(names == std::vector<std::string>{"l/enc/dense/kernel", "l/dec/dense/kernel", "l/bias"});
  // A file must not list one array under several names, because the array would be loaded once for each name.
  CHECK(mistake(file_of(directory, {"a:0", "a:0"})).find("weight_names of 'l': expected different names") !=
        std::string::npos);
}

TEST_CASE("weights of the layer in a TimeDistributed have the names of that layer's class") {
  const auto names_in = [](const std::string& path, const std::string& wrapped, size_t count) {
    const KerasWeightGroup group{path, "each", std::vector<KerasWeight>(count), wrapped};
    return names_of_vars({group}, Json())[0];
  };
  using Names = std::vector<std::string>;
  const std::string layer = "layers/time_distributed_1/layer";
  CHECK(names_in(layer, "dense_3", 2) == Names{"each/kernel", "each/bias"});
  CHECK(names_in(layer, "mine", 2) == Names{"each/0", "each/1"});
  CHECK(names_in(layer + "/cell", "gru", 3) == Names{"each/kernel", "each/recurrent_kernel", "each/bias"});
  CHECK(names_in(layer + "/backward_layer/cell", "bidirectional", 2) ==
        Names{"each/backward_kernel", "each/backward_recurrent_kernel"});
}

TEST_CASE("external, virtual and missing storage of weights is an error") {
  const test::TempDir directory;
  const auto with_kernel = [&](const auto& write) {
    std::string path = file_of(directory, {"other:0", "kernel:0"});
    const Hdf5Session session;
    const Hdf5Handle file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT));
    const Hdf5Handle layer(H5Gopen2(file, "l", H5P_DEFAULT));
    H5Ldelete(layer, "kernel:0", H5P_DEFAULT);
    write(layer);
    return path;
  };
  const std::string elsewhere = with_kernel([](hid_t layer) {
    H5Lcreate_external("/etc/passwd", "/", layer, "kernel:0", H5P_DEFAULT, H5P_DEFAULT);
  });
  CHECK(mistake(elsewhere).find(
            "expected a dataset or a group 'kernel:0', but this is a soft or external link") !=
        std::string::npos);
  // This chunk should have four numbers, but contains only three.
  const std::string packed = with_kernel([](hid_t layer) {
    const hsize_t four = 4;
    const Hdf5Handle space(H5Screate_simple(1, &four, nullptr)), creation(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_chunk(creation, 1, &four);
    H5Pset_deflate(creation, 1);
    const Hdf5Handle kernel(
        H5Dcreate2(layer, "kernel:0", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, creation, H5P_DEFAULT));
    // 12 zero bytes in zlib format, stored without compression.
    const unsigned char chunk[] = {0x78, 0x01, 0x01, 12, 0, 0xf3, 0xff, 0, 0,  0, 0, 0,
                                   0,    0,    0,    0,  0, 0,    0,    0, 12, 0, 1};
    const hsize_t origin = 0;
    REQUIRE(H5Dwrite_chunk(kernel, H5P_DEFAULT, 0, &origin, sizeof(chunk), chunk) >= 0);
  });
  CHECK(mistake(packed).find(
            "a chunk of this dataset must have 16 bytes after decompression, but has 12 bytes") !=
        std::string::npos);
}

TEST_CASE("names in a damaged global heap are an error") {
  const KerasFile keras(true);
  const std::string bytes = test::read_file(keras.path);
  const size_t heap = bytes.find("GCOL");
  REQUIRE(heap != std::string::npos);
  std::string damaged = bytes;
  // Writes free space of size 0, which would make libhdf5 loop forever.
  damaged.replace(heap + 16, 16, std::string(16, '\0'));
  test::write_file(keras.path, damaged);
  CHECK(mistake(keras.path)
            .starts_with(keras.path +
                         ": the attribute layer_names: expected an object or free space of a valid size"));
  damaged = bytes;
  damaged.replace(heap + 16 + 8, 8, std::string(8, '\xff'));
  test::write_file(keras.path, damaged);
  CHECK(mistake(keras.path).find("found an object of 18446744073709551615 bytes") != std::string::npos);
}

TEST_CASE("a file without weights is an error that says what kind of file it is") {
  const test::TempDir directory;
  CHECK(mistake(directory / "nothing.h5").find("nothing.h5") != std::string::npos);
  const std::string text = directory / "text.h5";
  test::write_file(text, "weights");
  CHECK(mistake(text) == text + ": expected a checkpoint of dtrain, found something else");
  const std::string cut = directory / "cut.h5";
  test::write_file(cut, "\x89HDF\r\n\x1a\n");
  CHECK(mistake(cut).starts_with(cut + ": expected "));
  const std::string pipe = directory / "pipe.h5";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(mistake(pipe).find("pipe.h5") != std::string::npos);
  const std::string empty = directory / "empty.h5";
  {
    const Hdf5Session session;
    Hdf5Handle(H5Fcreate(empty.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
  }
  CHECK(mistake(empty) ==
        empty + ": expected an .h5 file of dtrain or Keras, found an HDF5 file of another program");
}
