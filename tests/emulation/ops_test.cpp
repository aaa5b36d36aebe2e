// The GPU's operations against the CPU's, which are tested against double precision: elementwise, rows and
// columns, copies.
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "emulation/sides.h"

namespace dtrain::emulation {
namespace {

constexpr int64_t kSizes[] = {1, 7, 64, 1000, 4099};
constexpr std::pair<int64_t, int64_t> kRows[] = {{1, 1}, {3, 10}, {5, 33}, {2, 1024}, {40, 7}, {300, 64}};

const std::vector<ActivationSpec> kActivations = {
    {Activation::linear, 0, false}, {Activation::relu, 0, false},    {Activation::leaky_relu, 0.3f, false},
    {Activation::gelu, 0, false},   {Activation::gelu, 0, true},     {Activation::silu, 0, false},
    {Activation::tanh, 0, false},   {Activation::sigmoid, 0, false}, {Activation::elu, 0.7f, false}};

std::vector<float> ramp(int64_t n, float step) {
  std::vector<float> values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) values[i] = step * static_cast<float>(i % 97);
  return values;
}

}  // namespace

TEST_CASE("emulated ops: fill, copy and scale_add") {
  for (const int64_t n : kSizes) {
    CAPTURE(n);
    compare([n](Side& side) {
      Ops& ops = side.ops();
      ops.fill(side.out_f32(n), 2.5f, n);
      ops.copy(side.out(n), side.values(random_floats(n, 1)), n);
      ops.scale_add(side.f32(random_floats(n, 2), true), side.f32(random_floats(n, 3)), 0.5f, 2.0f, n);
      ops.scale_add(side.f32(Floats(static_cast<size_t>(n), NAN), true), side.f32(random_floats(n, 3)), 0.5f,
                    0, n);
    });
  }
}

TEST_CASE("emulated ops: sums and products of several arrays") {
  for (const int64_t n : {int64_t{1}, int64_t{13}, int64_t{1000}}) {
    for (const int count : {1, 2, 3, 9, 20}) {
      CAPTURE(n);
      CAPTURE(count);
      compare(
          [&](Side& side) {
            std::vector<const void*> srcs;
            for (int i = 0; i < count; ++i)
              srcs.push_back(side.values(random_floats(n, static_cast<uint64_t>(i) + 1)));
            const ActivationSpec relu{Activation::relu, 0, false}, none{};
            side.ops().sum(side.out(n), srcs, none, n);
            side.ops().sum(side.out(n), srcs, relu, n);
            side.ops().multiply(side.out(n), srcs, n);
            side.ops().sum_backward(relu, side.values(random_floats(n, 50)), srcs, side.out(n), n);
            side.ops().sum_backward({Activation::gelu, 0, false}, side.values(random_floats(n, 50)), srcs,
                                    side.out(n), n);
          },
          {.rounding = static_cast<double>(count) + 2});
    }
  }
}

TEST_CASE("emulated ops: activations") {
  for (const ActivationSpec& spec : kActivations) {
    CAPTURE(static_cast<int>(spec.kind));
    for (const int64_t n : {int64_t{1}, int64_t{29}, int64_t{2050}}) {
      compare([&](Side& side) {
        side.ops().activation_forward(spec, side.values(random_floats(n, 1, 4)), side.out(n), n);
        side.ops().activation_backward(spec, side.values(random_floats(n, 1)),
                                       side.values(random_floats(n, 2)), side.out(n), n);
        void* both = side.values(random_floats(n, 3), true);
        side.ops().activation_backward(spec, side.values(random_floats(n, 1)), both, both, n);
      });
    }
  }
}

TEST_CASE("emulated ops: dropout draws by sample and element") {
  for (const auto& [samples, per_sample] : kRows) {
    compare([&](Side& side) {
      const int64_t n = samples * per_sample;
      const auto* step = side.raw(std::vector<uint64_t>{77});
      side.ops().dropout(side.out(n), side.values(random_floats(n, 1)), 0.3f, Philox::of(5, 6), step, 1000,
                         samples, per_sample);
      side.ops().dropout(side.out(n), side.values(random_floats(n, 1)), 0, Philox::of(5, 6), step, 0, samples,
                         per_sample);
    });
  }
}

TEST_CASE("emulated ops: biases and column sums") {
  for (const auto& [rows, columns] : kRows) {
    CAPTURE(rows);
    CAPTURE(columns);
    compare(
        [&](Side& side) {
          const int64_t n = rows * columns;
          side.ops().add_bias(side.out(n), side.values(random_floats(n, 1)),
                              side.values(random_floats(columns, 2)), rows, columns);
          side.ops().column_sum(side.out_f32(columns), side.values(random_floats(n, 3)), rows, columns);
        },
        {.tolerance = 2e-5f});
  }
}

TEST_CASE("emulated ops: softmax") {
  for (const auto& [rows, columns] : kRows) {
    CAPTURE(rows);
    CAPTURE(columns);
    compare([&](Side& side) {
      const int64_t n = rows * columns;
      side.ops().softmax_forward(side.values(random_floats(n, 1, 10)), side.out(n), rows, columns);
      side.ops().softmax_backward(side.values(random_floats(n, 2)), side.values(random_floats(n, 3, 0.1f)),
                                  side.out(n), rows, columns);
    });
  }
}

TEST_CASE("emulated ops: layer normalisation") {
  for (const auto& [rows, columns] : kRows) {
    if (columns == 1) continue;
    CAPTURE(rows);
    CAPTURE(columns);
    for (const bool parameters : {true, false}) {
      compare(
          [&](Side& side) {
            const int64_t n = rows * columns;
            const void* src = side.values(random_floats(n, 1));
            const float* gamma = parameters ? side.f32(random_floats(columns, 2)) : nullptr;
            const float* beta = parameters ? side.f32(random_floats(columns, 3)) : nullptr;
            float *mean = side.out_f32(rows), *inverse = side.out_f32(rows);
            side.ops().layer_normalization_forward(src, gamma, beta, 1e-3f, side.out(n), mean, inverse, rows,
                                                   columns);
            side.ops().layer_normalization_backward(
                src, gamma, mean, inverse, side.values(random_floats(n, 4)), side.out(n),
                parameters ? side.out_f32(columns) : nullptr, parameters ? side.out_f32(columns) : nullptr,
                rows, columns);
          },
          {.tolerance = 5e-5f, .rounding = 8});
    }
  }
}

TEST_CASE("emulated ops: blocks and borders of images") {
  for (const int64_t columns : {1, 4, 6, 16, 33}) {
    CAPTURE(columns);
    compare([&](Side& side) {
      const int64_t rows = 9, dst_stride = columns + 8, src_stride = columns + 3;
      side.ops().copy_block(side.values(Floats(static_cast<size_t>(rows * dst_stride)), true), dst_stride,
                            side.values(random_floats(rows * src_stride, 1)), src_stride, rows, columns);
      const Padding2 padding{1, 2, 0, 3};
      const Shape shape{2, 5, 4, columns};
      const int64_t padded = 2 * 8 * 7 * columns;
      side.ops().pad_images(padding, side.values(random_floats(shape.elements(), 2)), side.out(padded),
                            shape);
      side.ops().crop_images(padding, side.values(random_floats(padded, 3)), side.out(shape.elements()),
                             shape);
    });
  }
}

TEST_CASE("emulated ops: embeddings") {
  for (const int64_t columns : {1, 8, 30}) {
    CAPTURE(columns);
    compare([&](Side& side) {
      const std::vector<int32_t> indices = {3, 0, 3, 6, 3, 1, 0, 3};
      const int64_t n = static_cast<int64_t>(indices.size());
      const std::vector<int32_t> astray = {3, -1, 7, 6, 3, 1, 100, 3};
      side.ops().embedding_forward(side.f32(random_floats(7 * columns, 1)), side.raw(indices),
                                   side.out(n * columns), n, 7, columns);
      side.ops().embedding_forward(side.f32(random_floats(7 * columns, 1)), side.raw(astray),
                                   side.out(n * columns), n, 7, columns);
      side.ops().embedding_backward(side.raw(indices), side.values(random_floats(n * columns, 2)),
                                    side.out_f32(7 * columns), n, 7, columns);
    });
  }
}

TEST_CASE("emulated ops: rows of stored data") {
  const std::vector<int64_t> rows = {4, 0, 2, 2};
  for (const int64_t elements : {1, 3, 32, 75}) {
    CAPTURE(elements);
    compare([&](Side& side) {
      std::vector<uint8_t> bytes(static_cast<size_t>(5 * elements));
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 37);
      const uint8_t* src = side.raw(bytes);
      const int64_t* order = side.raw(rows);
      const float* scales = side.f32(ramp(elements, 0.01f));
      const float* offsets = side.f32(ramp(elements, -0.2f));
      Ops& ops = side.ops();
      ops.load_rows({DType::uint8, true, elements, nullptr, nullptr, 1}, src, order, 4,
                    side.out(4 * elements));
      ops.load_rows({DType::uint8, true, elements, scales, offsets, elements}, src, order, 4,
                    side.out(4 * elements));
      ops.load_rows({DType::uint8, true, elements, scales, offsets, 1}, src, nullptr, 5,
                    side.out(5 * elements));
      ops.load_rows({DType::float32, true, elements, nullptr, nullptr, 1},
                    side.f32(random_floats(5 * elements, 1)), order, 4, side.out(4 * elements));
      ops.load_rows({DType::float32, false, elements, scales, offsets, elements},
                    side.f32(random_floats(5 * elements, 1)), nullptr, 5, side.out_f32(5 * elements));
      ops.load_rows({DType::int32, false, elements, nullptr, nullptr, 1},
                    side.f32(random_floats(5 * elements, 1)), order, 4,
                    side.out_f32(4 * elements));  // any 4 bytes
    });
  }
}

}  // namespace dtrain::emulation
