#include "products.h"

#include <algorithm>

namespace dtrain::bench {
namespace {

constexpr int64_t kBatch = 8192;

}  // namespace

DenseProducts::DenseProducts(Bench& bench, int64_t inputs, int64_t units, const ActivationSpec& activation,
                             bool first)
    : inputs_(inputs),
      units_(units),
      input_(bench.numbers(kBatch * inputs)),
      kernel_(bench.numbers(inputs * units, 0.02f)),
      bias_(bench.numbers(units)),
      output_(bench.room(kBatch * units)),
      diff_output_(bench.numbers(kBatch * units, 0.01f)),
      diff_input_(bench.room(first ? 1 : kBatch * inputs)),
      diff_kernel_(bench.context().allocate(static_cast<size_t>(inputs * units) * sizeof(float))) {
  Ops& ops = bench.ops();
  forward_ = ops.matmul({.m = kBatch, .n = units, .k = inputs, .bias = true, .activation = activation});
  by_kernel_ = ops.matmul(
      {.m = inputs, .n = units, .k = kBatch, .transpose_a = true, .float32_result = true, .activation = {}});
  size_t scratch = std::max(forward_->scratch_bytes(), by_kernel_->scratch_bytes());
  if (!first) {
    by_input_ = ops.matmul({.m = kBatch, .n = inputs, .k = units, .transpose_b = true, .activation = {}});
    scratch = std::max(scratch, by_input_->scratch_bytes());
  }
  scratch_ = bench.context().allocate(std::max<size_t>(scratch, 1));
}

void DenseProducts::forward() {
  forward_->run(input_.data(), kernel_.data(), bias_.data(), output_.data(), scratch_.data());
}

void DenseProducts::by_kernel() {
  by_kernel_->run(input_.data(), diff_output_.data(), nullptr, diff_kernel_.data(), scratch_.data());
}

void DenseProducts::by_input() {
  by_input_->run(diff_output_.data(), kernel_.data(), nullptr, diff_input_.data(), scratch_.data());
}

double DenseProducts::operations() const {
  return 2.0 * static_cast<double>(kBatch) * static_cast<double>(inputs_) * static_cast<double>(units_);
}

std::deque<DenseProducts> wide_mlp(Bench& bench) {
  std::deque<DenseProducts> layers;
  layers.emplace_back(bench, 8000, 4000, ActivationSpec{.kind = Activation::tanh}, true);
  layers.emplace_back(bench, 4000, 2000, ActivationSpec{.kind = Activation::relu}, false);
  layers.emplace_back(bench, 2000, 500, ActivationSpec{.kind = Activation::relu}, false);
  layers.emplace_back(bench, 500, 300, ActivationSpec{.kind = Activation::relu}, false);
  layers.emplace_back(bench, 300, 1, ActivationSpec{}, false);
  return layers;
}

namespace {

void measure_in(Json& rows, const GpuMath& math) {
  Bench bench(math);
  std::deque<DenseProducts> layers = wide_mlp(bench);
  const std::string prefix = name_of(math) + " ";
  double operations = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    DenseProducts& layer = layers[i];
    const std::string name = prefix + "dense_" + std::to_string(i + 1);
    const double each = layer.operations();
    rows.push(row(name + " forward", bench.seconds([&] { layer.forward(); }), 0, each));
    rows.push(row(name + " by kernel", bench.seconds([&] { layer.by_kernel(); }), 0, each));
    if (layer.has_by_input())
      rows.push(row(name + " by input", bench.seconds([&] { layer.by_input(); }), 0, each));
    operations += each * (layer.has_by_input() ? 3 : 2);
  }
  const double seconds = bench.seconds([&] {
    for (DenseProducts& layer : layers) layer.forward();
    for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
      layer->by_kernel();
      if (layer->has_by_input()) layer->by_input();
    }
  });
  rows.push(row(prefix + "all products", seconds, 0, operations));
}

}  // namespace

Json measure_products() {
  Json rows = Json::array();
  measure_in(rows, {});
  measure_in(rows, {.tf32 = true});
  measure_in(rows, {.type = DType::bfloat16});
  return rows;
}

}  // namespace dtrain::bench
