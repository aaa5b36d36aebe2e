#include "interop/keras/import/keras_1.h"

#include <numeric>

#include <doctest/doctest.h>

using namespace dtrain;

namespace {

Json renamed_layer(const char* layer) {
  const Json model = Json::parse(
      R"({"class_name": "Sequential", "config": [{"class_name": "Convolution2D", "config": {"dim_ordering": "th"}}, )" +
      std::string(layer) + "]}");
  return with_keras_2_names(model).at("config").items().at(1);
}

/// Returns a kernel with the elements 0, 1, 2, ...
KerasWeight counting(const Shape& shape) {
  const auto values = std::make_shared<std::vector<float>>(static_cast<size_t>(shape.elements()));
  std::iota(values->begin(), values->end(), 0.0f);
  return {"kernel", shape, {values, values->data()}, {}};
}

KerasModelLayer layer_of(const char* class_name, const char* config) {
  KerasModelLayer layer;
  layer.class_name = class_name;
  layer.config = Json::parse(config);
  return layer;
}

}  // namespace

TEST_CASE("Keras 1: layers and options get the names of Keras 2") {
  CHECK(
      renamed_layer(R"({"class_name": "Convolution2D", "config": {"name": "a", "nb_filter": 4, "nb_row": 3,
      "nb_col": 2, "border_mode": "same", "subsample": [2, 2], "dim_ordering": "tf", "init": "uniform", "bias": false,
      "W_regularizer": null, "input_dim": null}})")
          .dump() ==
      R"({"class_name": "Conv2D", "config": {"name": "a", "filters": 4, "padding": "same", "strides": [2, 2], )"
      R"("data_format": "channels_last", "kernel_initializer": "random_uniform", "use_bias": false, )"
      R"("kernel_regularizer": null, "kernel_size": [3, 2]}})");
  CHECK(
      renamed_layer(
          R"({"class_name": "Embedding", "config": {"input_dim": 9, "output_dim": 4, "init": "one"}})")
          .dump() ==
      R"({"class_name": "Embedding", "config": {"input_dim": 9, "output_dim": 4, "embeddings_initializer": "ones"}})");
  CHECK(
      renamed_layer(
          R"({"class_name": "Merge", "config": {"name": "m", "mode": "concat", "concat_axis": 1, "dot_axes": -1}})")
          .dump() == R"({"class_name": "Concatenate", "config": {"name": "m", "axis": 1}})");
  CHECK(
      renamed_layer(R"({"class_name": "PReLU", "config": {"init": "zero", "shared_axes": [2, 3]}})").dump() ==
      R"({"class_name": "PReLU", "config": {"alpha_initializer": "zeros", "shared_axes": [2, 3]}})");
  // A Merge with another mode is left unchanged; the import rejects it later.
  const char* dot = R"({"class_name": "Merge", "config": {"name": "m", "mode": "dot"}})";
  CHECK(renamed_layer(dot).dump() == dot);
}

TEST_CASE("Keras 1: layers without dim_ordering use the model's") {
  CHECK(
      renamed_layer(R"({"class_name": "ZeroPadding2D", "config": {"padding": [1, 2, 3, 4]}})").dump() ==
      R"({"class_name": "ZeroPadding2D", "config": {"padding": [[1, 2], [3, 4]], "data_format": "channels_first"}})");
}

TEST_CASE("Keras 1: kernels get the axes of Keras 2") {
  const KernelLayout keras_1{true, false};
  const KerasModelLayer first = layer_of("Conv2D", R"({"data_format": "channels_first"})");
  const KerasWeight kernel = restored_kernel(first, counting({2, 3, 4, 5}), keras_1);
  CHECK(kernel.shape == Shape{4, 5, 3, 2});
  CHECK(kernel.values[1] == 60);  // filter 1
  CHECK(kernel.values[2] == 20);  // channel 1
  CHECK(kernel.values[6] == 1);   // column 1
  const KerasModelLayer sequence = layer_of("Conv1D", R"({"filters": 5})");
  CHECK(restored_kernel(sequence, counting({4, 1, 3, 5}), keras_1).shape == Shape{4, 3, 5});
  const KerasWeight early = restored_kernel(sequence, counting({5, 3, 4, 1}), keras_1);
  CHECK(early.shape == Shape{4, 3, 5});
  CHECK(early.values[1] == 12);
  const KerasModelLayer transposed = layer_of("Conv2DTranspose", R"({"data_format": "channels_last"})");
  CHECK(restored_kernel(transposed, counting({2, 3, 4, 5}), keras_1).shape == Shape{2, 3, 5, 4});
}

TEST_CASE("Theano's kernels are reversed along the window") {
  const KernelLayout theano{false, true};
  const KerasWeight kernel = restored_kernel(layer_of("Conv2D", "{}"), counting({2, 2, 1, 2}), theano);
  CHECK(std::vector<float>(kernel.values.get(), kernel.values.get() + 8) ==
        std::vector<float>{6, 7, 4, 5, 2, 3, 0, 1});
  const KerasWeight sequence = restored_kernel(layer_of("Conv1D", "{}"), counting({2, 1, 2}), theano);
  CHECK(std::vector<float>(sequence.values.get(), sequence.values.get() + 4) ==
        std::vector<float>{2, 3, 0, 1});
  const KerasWeight volume = restored_kernel(layer_of("Conv3D", "{}"), counting({2, 1, 2, 1, 2}), theano);
  CHECK(std::vector<float>(volume.values.get(), volume.values.get() + 8) ==
        std::vector<float>{6, 7, 4, 5, 2, 3, 0, 1});
  CHECK(restored_kernel(layer_of("SeparableConv2D", "{}"), counting({2, 2, 1, 2}), theano).values[0] == 0);
}
