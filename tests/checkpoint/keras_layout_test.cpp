// The layout of checkpoint files, as Keras and other programs that read plain HDF5 files see it.
#include <algorithm>
#include <cstring>
#include <span>

#include <doctest/doctest.h>
#include <hdf5.h>

#include "hdf5/hdf5_session.h"
#include "sample.h"

namespace dtrain {
using namespace test;

namespace {
/// Returns the strings of an attribute, separated by "|"; "missing" if there is no such attribute.
std::string attribute(hid_t file, const char* object, const char* name) {
  if (H5Aexists_by_name(file, object, name, H5P_DEFAULT) <= 0) return "missing";
  const hid_t attribute = H5Aopen_by_name(file, object, name, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
  const size_t width = H5Tget_size(type);
  std::string block(width * static_cast<size_t>(H5Sget_simple_extent_npoints(space)), '\0'), all;
  H5Aread(attribute, type, block.data());
  for (size_t at = 0; at < block.size(); at += width) {
    if (at > 0) all += "|";
    all.append(block, at, strnlen(&block[at], width));
  }
  H5Sclose(space);
  H5Tclose(type);
  H5Aclose(attribute);
  return all;
}
}  // namespace

TEST_CASE("weights have the paths that Keras uses") {
  const TempDir directory;
  const Sample sample;
  save_checkpoint(directory / "a.h5", sample.content);
  const Hdf5Session session;
  const hid_t file = H5Fopen((directory / "a.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  REQUIRE(file >= 0);
  CHECK(attribute(file, "/", "keras_version") == "2.15.0");
  CHECK(attribute(file, "/", "backend") == "tensorflow");
  CHECK(attribute(file, "/", "model_config") == sample.content.model_config.dump());
  CHECK(attribute(file, "/model_weights", "layer_names") == "conv|flatten|block.0.odd");
  CHECK(attribute(file, "/model_weights/conv", "weight_names") == "conv/kernel:0|conv/bias:0");
  CHECK(attribute(file, "/model_weights/flatten", "weight_names") == "");
  CHECK(attribute(file, "/model_weights/block.0.odd", "weight_names") ==
        "block.0.odd/counts:0|block.0.odd/bytes:0|block.0.odd/scale:0|block.0.odd/nothing:0");
  // If this group existed, Keras 3.3 could not load weights by name.
  CHECK(H5Lexists(file, "/model_weights/top_level_model_weights", H5P_DEFAULT) == 0);
  CHECK(attribute(file, "/", "training_config") == sample.content.training_config.dump());
  CHECK(attribute(file, "/dtrain", "layer_names") == "conv|flatten|block/0/odd");
  // If this group existed, Keras 3 could not train.
  CHECK(H5Lexists(file, "/optimizer_weights", H5P_DEFAULT) == 0);
  const hid_t kernel = H5Dopen2(file, "/model_weights/conv/conv/kernel:0", H5P_DEFAULT);
  REQUIRE(kernel >= 0);
  std::vector<float> values(6);
  CHECK(H5Dread(kernel, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
  CHECK(std::ranges::equal(std::as_bytes(std::span(values)), std::as_bytes(std::span(sample.kernel))));
  H5Dclose(kernel);
  for (const char* path : {"/model_weights/block.0.odd/block.0.odd/nothing:0",
                           "/dtrain/optimizer/m/conv/kernel:0", "/dtrain/state"}) {
    const hid_t dataset = H5Dopen2(file, path, H5P_DEFAULT);
    CHECK_MESSAGE(dataset >= 0, path);
    H5Dclose(dataset);
  }
  H5Fclose(file);
}

TEST_CASE("a list of names of more than 64,512 bytes is split into several attributes, as in Keras") {
  const TempDir directory;
  CheckpointContent content;
  // If each name has 100 bytes, an attribute can hold 645 names. Therefore 1291 names need three attributes.
  // The first attribute has one name more than the other two.
  for (int i = 1000; i < 2291; ++i) content.layers.push_back({std::to_string(i) + std::string(96, 'x'), {}});
  save_checkpoint(directory / "a.h5", content);
  const Hdf5Session session;
  const hid_t file = H5Fopen((directory / "a.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  REQUIRE(file >= 0);
  CHECK(attribute(file, "/model_weights", "layer_names") == "missing");
  CHECK(attribute(file, "/model_weights", "layer_names0").size() == 431 * 101 - 1);
  CHECK(attribute(file, "/model_weights", "layer_names1").size() == 430 * 101 - 1);
  CHECK(attribute(file, "/model_weights", "layer_names2").substr(0, 4) == "1861");
  CHECK(attribute(file, "/model_weights", "layer_names3") == "missing");
  H5Fclose(file);
}
}  // namespace dtrain
