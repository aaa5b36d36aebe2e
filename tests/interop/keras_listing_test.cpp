// Tests the listing of .h5 files that Keras wrote.
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.h"
#include "checkpoint/foreign_file.h"
#include "hdf5/hdf5_session.h"
#include "interop/keras/files/listing.h"
#include "interop/weight_file.h"
#include "support/temp_dir.h"

using namespace dtrain;

namespace {

class Hdf5File {
 public:
  explicit Hdf5File(const std::string& path)
      : file_(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) {}

  void write(const std::string& path, hid_t type, const std::vector<hsize_t>& shape) const {
    const Hdf5Handle links(H5Pcreate(H5P_LINK_CREATE));
    H5Pset_create_intermediate_group(links, 1);
    const Hdf5Handle space(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr));
    const Hdf5Handle made(H5Dcreate2(file_, path.c_str(), type, space, links, H5P_DEFAULT, H5P_DEFAULT));
  }

  void set(const std::string& group, const std::string& attribute,
           const std::vector<std::string>& names) const {
    constexpr size_t kBytes = 400;
    const Hdf5Handle object(H5Oopen(file_, group.c_str(), H5P_DEFAULT)), type(H5Tcopy(H5T_C_S1));
    H5Tset_size(type, kBytes);
    const hsize_t count = names.size();
    const Hdf5Handle space(H5Screate_simple(1, &count, nullptr));
    const Hdf5Handle made(H5Acreate2(object, attribute.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT));
    std::string texts;
    for (std::string name : names) {
      name.resize(kBytes);
      texts += name;
    }
    H5Awrite(made, type, texts.data());
  }

  operator hid_t() const { return file_; }

 private:
  Hdf5Handle file_;
};

/// Returns one line per layer, such as "dense (Dense): kernel:0 2x3 float32".
std::string listed(const KerasContent& file) {
  std::string text;
  for (const KerasLayerEntry& layer : file.layers) {
    text += fmt::format("{} ({}):", layer.name, layer.kind);
    for (const KerasArray& array : layer.arrays)
      text += fmt::format(" {} {} {}", array.name, array.shape.str(), array.dtype);
    text += "\n";
  }
  for (const KerasArray& array : file.optimizer) text += fmt::format("optimizer: {}\n", array.name);
  return text;
}

/// Returns the names by which a model refers to the weights of the file, such as "dense/kernel".
std::string weights_of(const KerasContent& file) {
  std::string text;
  for (const KerasLayerEntry& layer : file.layers)
    for (const KerasArray& array : layer.arrays) text += array.weight + "\n";
  return text;
}

}  // namespace

TEST_CASE("a whole model is listed in order, with weights of any type") {
  const test::TempDir directory;
  const std::string path = directory / "model.h5";
  {
    const Hdf5Session session;
    const Hdf5File file(path);
    file.write("model_weights/dense/dense/kernel:0", H5T_NATIVE_FLOAT, {2, 3});
    file.write("model_weights/dense/seed:0", H5T_NATIVE_INT64, {2});
    file.write("model_weights/another/a/kernel:0", H5T_NATIVE_DOUBLE, {1});
    file.write("optimizer_weights/adam/iteration:0", H5T_NATIVE_INT64, {1});
    file.set("model_weights", "layer_names", {"dense", "another"});
    file.set("model_weights/dense", "weight_names", {"dense/kernel:0", "seed:0"});
    file.set("model_weights/another", "weight_names", {"a/kernel:0"});
    file.set("/", "keras_version", {"2.15.0"});
    file.set("/", "model_config",
             {R"({"class_name": "Functional", "config": {"name": "net", "layers": [)"
              R"({"class_name": "InputLayer", "config": {"name": "x"}}, )"
              R"({"class_name": "Dense", "config": {"name": "dense"}}, )"
              R"({"class_name": "Functional", "config": {"name": "another"}}]}})"});
  }
  const KerasContent file = read_keras_file(path);
  CHECK(file.layout == KerasLayout::layers);
  CHECK(file.keras_version == "2.15.0");
  CHECK(file.model_class == "Functional");
  CHECK(file.model_name == "net");
  CHECK(!file.is_compiled);
  CHECK(listed(file) ==
        "x (InputLayer):\n"
        "dense (Dense): dense/kernel:0 2x3 float32 seed:0 2 int64\n"
        "another (Functional): a/kernel:0 1 float64\n"
        "optimizer: adam/iteration:0\n");
  CHECK(weights_of(file) == "dense/kernel\ndense/seed\nanother/kernel\n");
}

TEST_CASE("weights of Keras 3 are listed, and unusable ones are named") {
  const test::TempDir directory;
  const std::string path = directory / "model.weights.h5";
  {
    const Hdf5Session session;
    const Hdf5File file(path);
    file.write("layers/dense/vars/0", H5T_NATIVE_FLOAT, {2, 3});
    file.write("layers/dense/vars/1", H5T_NATIVE_FLOAT, {3});
    file.write("layers/functional/layers/lstm/cell/vars/0", H5T_NATIVE_FLOAT, {4});
    file.write("optimizer/vars/0", H5T_NATIVE_INT64, {1});
  }
  CHECK(listed(read_keras_file(path)) ==
        "dense (): vars/0 2x3 float32 vars/1 3 float32\n"
        "functional/lstm/cell (): vars/0 4 float32\n"
        "optimizer: optimizer/vars/0\n");
  CHECK(weights_of(read_keras_file(path)) == "dense/kernel\ndense/bias\nfunctional/lstm/0\n");
  const std::string named = "weights that Keras 3 saved as .weights.h5; to start a new run with them";
  CHECK(describe_file(path).starts_with(named));
  CHECK_THROWS_WITH_AS(WeightFile::load(path),
                       doctest::Contains("expected an array of 24 bytes, but the file stores only 0 bytes"),
                       UserError);
  CHECK_THROWS_WITH_AS(Checkpoint::load(path), doctest::Contains(named.c_str()), UserError);
}

TEST_CASE("cyclic groups and files of other programs are errors") {
  const test::TempDir directory;
  const std::string path = directory / "circle.h5", other = directory / "other.h5";
  {
    const Hdf5Session session;
    const Hdf5File file(path);
    file.write("layers/dense/vars/0", H5T_NATIVE_FLOAT, {2});
    H5Lcreate_hard(file, "/layers", file, "/layers/dense/layers", H5P_DEFAULT, H5P_DEFAULT);
    Hdf5File(other).write("x", H5T_NATIVE_FLOAT, {2});
  }
  CHECK_THROWS_WITH_AS(read_keras_file(path), doctest::Contains("levels of groups, but the file has more"),
                       UserError);
  CHECK_THROWS_WITH_AS(read_keras_file(other), doctest::Contains("HDF5 file of another program"), UserError);
  CHECK(describe_file(other) == "an HDF5 file that another program wrote");
}
