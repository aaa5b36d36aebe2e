#include <fmt/format.h>

#include "nn/layers/common.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

struct EmbeddingOptions {
  int64_t input_dim = 0;
  int64_t output_dim = 0;
  Kind<Initializer> embeddings_initializer = kinds<Initializer>().make("random_uniform");

  static const Schema<EmbeddingOptions>& schema() {
    using O = EmbeddingOptions;
    static const auto schema =
        Schema<O>("A trained row of numbers for every whole number from 0 to input_dim - 1.")
            .required("input_dim", &O::input_dim, "how many rows", extent())
            .required("output_dim", &O::output_dim, "the length of a row", extent())
            .optional("embeddings_initializer", &O::embeddings_initializer, "how the rows begin")
            .details({"embeddings_initializer"});
    return schema;
  }
};

class EmbeddingKernel : public Kernel {
 public:
  EmbeddingKernel(const LayerRequest& request, const EmbeddingOptions& options)
      : ops_(request.ops),
        indices_(batch_elements(request, request.inputs[0].shape)),
        rows_(options.input_dim),
        columns_(options.output_dim) {
    traits_.backward_reads_inputs = trains_parameters(request);
  }

  void forward(const Pass& pass) override {
    ops_.embedding_forward(pass.parameters[0], numbers(pass), pass.output, indices_, rows_, columns_);
  }

  void backward(const Pass& pass) override {
    if (pass.diff_parameters[0])
      ops_.embedding_backward(numbers(pass), pass.diff_output, pass.diff_parameters[0], indices_, rows_,
                              columns_);
  }

 private:
  static const int32_t* numbers(const Pass& pass) { return static_cast<const int32_t*>(pass.inputs[0]); }

  Ops& ops_;
  int64_t indices_, rows_, columns_;
};

class Embedding : public LayerWith<EmbeddingOptions> {
 public:
  using LayerWith::LayerWith;

  std::optional<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                  const Complain& complain) const override {
    if (!one_input(inputs, complain)) return std::nullopt;
    if (inputs[0].dtype != DType::int32) {
      complain(
          fmt::format("expected an int32 input, found '{}' of {}", inputs[0].name, name_of(inputs[0].dtype)));
      return std::nullopt;
    }
    std::vector<int64_t> shape = inputs[0].shape.extents();
    shape.push_back(options_.output_dim);
    return TensorSpec{{}, Shape(shape), DType::float32};
  }

  std::vector<ParameterSpec> parameters(std::span<const TensorSpec>) const override {
    return {{"embeddings", {options_.input_dim, options_.output_dim}, options_.embeddings_initializer, {}}};
  }

  std::unique_ptr<Kernel> prepare(const LayerRequest& request) const override {
    return std::make_unique<EmbeddingKernel>(request, options_);
  }

  std::optional<int64_t> indices() const override { return options_.input_dim; }

  std::string keras_class() const override { return "Embedding"; }
};

}  // namespace

void add_embedding(KindTable<Layer>& table) {
  table.add<Embedding>("embedding", EmbeddingOptions::schema());
}

}  // namespace dtrain
