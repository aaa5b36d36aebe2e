#include <fmt/format.h>

#include "nn/layers/common.h"
#include "nn/layers/core/tied_dense.h"
#include "nn/layers/table.h"
#include "nn/layers/weight_options.h"

namespace dtrain {
namespace {

struct EmbeddingOptions {
  int64_t input_dim = 0;
  int64_t output_dim = 0;
  bool mask_zero = false;
  WeightOptions embeddings{registry<Initializer>().make("random_uniform")};

  static const Schema<EmbeddingOptions>& schema() {
    using O = EmbeddingOptions;
    static const auto schema =
        Schema<O>("Maps integers to vectors: each integer from 0 to input_dim - 1 has a trained vector.")
            .example("{input_dim: 1000, output_dim: 16}")
            .required("input_dim", &O::input_dim, "number of vectors", extent())
            .required("output_dim", &O::output_dim, "length of each vector", extent())
            .optional("mask_zero", &O::mask_zero,
                      "Whether the integer 0 means padding. If true, later layers, losses and metrics ignore "
                      "the positions with padding.")
            .part("embeddings_", &O::embeddings, weight_schema("the vectors"))
            .details({"mask_zero"});
    return schema;
  }
};

class PreparedEmbedding : public PreparedLayer {
 public:
  PreparedEmbedding(const LayerRequest& request, const EmbeddingOptions& options)
      : ops_(request.ops),
        indices_(batch_elements(request, request.inputs[0].shape)),
        rows_(options.input_dim),
        columns_(options.output_dim),
        mask_zero_(options.mask_zero) {
    requirements_.backward_reads_inputs = trains_parameters(request);
  }

  void forward(const LayerArguments& args) override {
    ops_.embedding_forward(args.parameters[0], numbers(args), args.output(), indices_, rows_, columns_);
    if (mask_zero_) ops_.mask_of_indices(numbers(args), static_cast<uint8_t*>(args.outputs[1]), indices_);
  }

  void backward(const LayerArguments& args) override {
    if (args.diff_parameters[0])
      ops_.embedding_backward(numbers(args), args.diff_output(), args.diff_parameters[0], indices_, rows_,
                              columns_);
  }

 private:
  static const int32_t* numbers(const LayerArguments& args) {
    return static_cast<const int32_t*>(args.inputs[0]);
  }

  Ops& ops_;
  int64_t indices_, rows_, columns_;
  bool mask_zero_;
};

class Embedding : public LayerWith<EmbeddingOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    if (!one_input(inputs, report_error)) return {};
    if (inputs[0].dtype != DType::int32) {
      report_error(fmt::format("expected an int32 input, but '{}' has the type {}", inputs[0].name,
                               name_of(inputs[0].dtype)));
      return {};
    }
    std::vector<int64_t> shape = inputs[0].shape.extents();
    shape.push_back(options_.output_dim);
    std::vector<TensorSpec> outputs = {{{}, Shape(shape), DType::float32}};
    if (options_.mask_zero) outputs.push_back({{}, inputs[0].shape, DType::uint8});
    return outputs;
  }

  std::vector<ParameterSpec> parameters(std::span<const TensorSpec>) const override { return {embeddings()}; }

  std::string_view tied_kind() const override { return "dense"; }
  Configured<Layer> tied(const ConfigNode& kind, const ConfigNode& options,
                         Diagnostics& diagnostics) const override {
    return tied_dense(embeddings(), kind, options, diagnostics);
  }

  bool is_by_position() const override { return true; }
  std::optional<float> padding() const override {
    return options_.mask_zero ? std::optional(0.0f) : std::nullopt;
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return std::make_unique<PreparedEmbedding>(request, options_);
  }

  std::optional<int64_t> indices() const override { return options_.input_dim; }

 private:
  ParameterSpec embeddings() const {
    return options_.embeddings.parameter("embeddings", {options_.input_dim, options_.output_dim});
  }
};

}  // namespace

void add_embedding(Registry<Layer>& table) {
  table.add<Embedding>("embedding", EmbeddingOptions::schema());
}

}  // namespace dtrain
