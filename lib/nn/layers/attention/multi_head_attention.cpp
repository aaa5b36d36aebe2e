#include <array>
#include <optional>

#include <fmt/format.h>

#include "base/text.h"
#include "nn/layers/attention/cached_attention.h"
#include "nn/layers/attention/projections.h"
#include "nn/layers/common.h"
#include "nn/layers/table.h"
#include "nn/layers/weight_options.h"

namespace dtrain {
namespace {

struct RotaryOptions {
  double base = 10000;

  static const Schema<RotaryOptions>& schema() {
    static const auto schema =
        Schema<RotaryOptions>("Rotary position embeddings.")
            .optional("base", &RotaryOptions::base,
                      "Base of the rotation angles. If a head has 2n elements, the pair of elements i and i "
                      "+ n is rotated by the angle position * base^(-i / n).",
                      greater_than(0.0));
    return schema;
  }
};

struct MultiHeadAttentionOptions {
  int64_t num_heads = 1;
  std::optional<int64_t> key_dim, value_dim, num_key_value_heads;
  bool causal = false;
  double dropout = 0;
  bool use_bias = true;
  std::optional<RotaryOptions> rotary;
  WeightOptions kernel{registry<Initializer>().make("glorot_uniform")};
  WeightOptions bias{registry<Initializer>().make("zeros")};

  static const Schema<MultiHeadAttentionOptions>& schema() {
    using O = MultiHeadAttentionOptions;
    const auto size = between<std::optional<int64_t>>(1, 1 << 30);
    static const auto schema =
        Schema<O>(
            "Multi-head attention (Vaswani et al. 2017). For each position of the query, the output is "
            "computed from a weighted mean of the values. A single input is used as query, value and key. "
            "Two inputs are [query, value], and the value is also the key. Three inputs are [query, value, "
            "key].")
            .example("{num_heads: 4, causal: true}")
            .required("num_heads", &O::num_heads, "number of query heads", extent())
            .optional("key_dim", &O::key_dim,
                      "Number of features of each query head and each key head. Default: the width of the "
                      "first input divided by num_heads.",
                      size)
            .optional("value_dim", &O::value_dim, "Number of features of each value head. Default: key_dim.",
                      size)
            .optional("num_key_value_heads", &O::num_key_value_heads,
                      "Number of key heads and of value heads (grouped-query attention). Each of them is "
                      "shared by num_heads / num_key_value_heads query heads. Default: num_heads.",
                      size)
            .optional("causal", &O::causal,
                      "Whether the attention is causal. If true, a position attends only to itself and to "
                      "earlier positions.")
            .optional("dropout", &O::dropout,
                      "fraction of the attention weights that are set to 0 in training",
                      between_excluding_high(0.0, 1.0))
            .optional("use_bias", &O::use_bias,
                      "whether to add biases to the queries, keys, values and the output")
            .optional("rotary", &O::rotary,
                      "Rotary position embeddings: queries and keys are rotated by angles that depend on "
                      "their position. Default: no rotation.")
            .part("kernel_", &O::kernel, weight_schema("the kernels"))
            .part("bias_", &O::bias, weight_schema("the biases"))
            .details({"causal", "dropout", "use_bias", "kernel_initializer", "bias_initializer"});
    return schema;
  }
};

/// Sizes that are derived from the options and the inputs.
struct AttentionShape {
  int64_t heads, kv_heads, key_dim, value_dim;
  size_t key_input, value_input;  // indices of the inputs that give the keys and the values

  int64_t query_width() const { return heads * key_dim; }
  int64_t key_width() const { return kv_heads * key_dim; }
  int64_t value_width() const { return kv_heads * value_dim; }
  int64_t output_width() const { return heads * value_dim; }
};

/// The location of the queries, the keys or the values in the result of a projection. One projection computes
/// all arrays that have the same input.
struct ProjectedArray {
  size_t projections;  // index of the projection, which is also the index of its input
  int64_t column;
};

/// In training, forward saves three kinds of arrays for backward: the projected queries, keys and values; the
/// output of attention; and the logsumexp of the attention scores.
class PreparedMultiHeadAttention : public PreparedLayer {
 public:
  PreparedMultiHeadAttention(const LayerRequest& request, const AttentionShape& shape,
                             const MultiHeadAttentionOptions& options)
      : ops_(request.ops), rotary_(options.rotary), stream_(request.stream) {
    ArrayOffsets scratch, saved;
    add_projections(request, shape, options.use_bias, scratch);
    const int64_t queries = request.inputs[0].shape[0], keys = request.inputs[shape.key_input].shape[0];
    const int64_t rows = request.batch * queries;
    spec_ = {.batch = request.batch,
             .queries = queries,
             .keys = keys,
             .heads = shape.heads,
             .kv_heads = shape.kv_heads,
             .key_dim = shape.key_dim,
             .value_dim = shape.value_dim,
             .causal = options.causal,
             .dropout = request.training ? static_cast<float>(options.dropout) : 0.0f,
             .training = request.training,
             .masked = is_masked(request),
             .query_stride = width_of(query_),
             .key_stride = width_of(key_),
             .value_stride = width_of(value_)};
    attention_ = ops_.attention(spec_);
    output_ = std::make_unique<Projections>(
        request, Projections::Extent{rows, shape.output_width()},
        std::vector<Projections::Part>{{options.use_bias ? size_t{6} : size_t{3}, request.output().shape[1]}},
        options.use_bias, true, scratch);

    add_arrays(request.training ? saved : scratch, rows * shape.output_width(), kept_);
    if (request.training) {
      kept_.logsumexp = saved.add(rows * shape.heads, sizeof(float));
      add_arrays(scratch, rows * shape.output_width(), gradients_);
    }
    if (rotary_) table_ = scratch.add(std::max(queries, keys) * shape.key_dim, sizeof(float));
    operation_ = scratch.add(attention_->scratch_bytes());
    requirements_.scratch_bytes = scratch.bytes();
    requirements_.saved_bytes = saved.bytes();
    requirements_.backward_reads_inputs = trains_parameters(request);
  }

  void forward(const LayerArguments& args) override {
    void* const kept = spec_.training ? args.saved : args.scratch;
    for (size_t i = 0; i < projections_.size(); ++i)
      projections_[i].forward(args, args.inputs[i], array_at(kept, kept_.projected[i]));
    rotate(args, kept, kept_, false);
    attention_->forward(
        {.query = part(kept, kept_, query_),
         .key = part(kept, kept_, key_),
         .value = part(kept, kept_, value_),
         .key_mask = key_mask(args),
         .dst = array_at(kept, kept_.attended),
         .logsumexp = spec_.training ? static_cast<float*>(array_at(kept, kept_.logsumexp)) : nullptr,
         .dropout = dropout(args),
         .scratch = array_at(args.scratch, operation_)});
    output_->forward(args, array_at(kept, kept_.attended), args.output());
  }

  void backward(const LayerArguments& args) override {
    void *const attended = array_at(args.saved, kept_.attended), *const diff_attended = array_at(
                                                                     args.scratch, gradients_.attended);
    output_->backward(args, attended, args.diff_output(), diff_attended);
    attention_->backward({.query = part(args.saved, kept_, query_),
                          .key = part(args.saved, kept_, key_),
                          .value = part(args.saved, kept_, value_),
                          .key_mask = key_mask(args),
                          .dst = attended,
                          .logsumexp = static_cast<const float*>(array_at(args.saved, kept_.logsumexp)),
                          .diff_dst = diff_attended,
                          .diff_query = part(args.scratch, gradients_, query_),
                          .diff_key = part(args.scratch, gradients_, key_),
                          .diff_value = part(args.scratch, gradients_, value_),
                          .dropout = dropout(args),
                          .scratch = array_at(args.scratch, operation_)});
    rotate(args, args.scratch, gradients_, true);
    for (size_t i = 0; i < projections_.size(); ++i)
      projections_[i].backward(args, args.inputs[i], array_at(args.scratch, gradients_.projected[i]),
                               args.diff_inputs[i]);
  }

 private:
  /// Offsets of the arrays of the forward call, or of the gradients of these arrays.
  struct Arrays {
    std::vector<size_t> projected;  // results of projections_
    size_t attended = 0, logsumexp = 0;
  };

  int64_t width_of(const ProjectedArray& array) const { return projections_[array.projections].width(); }
  /// Returns a pointer to the first element of the queries, keys or values.
  void* part(void* memory, const Arrays& arrays, const ProjectedArray& array) const {
    return array_at(memory, arrays.projected[array.projections] +
                                static_cast<size_t>(array.column) * bytes_of(ops_.compute_type()));
  }

  void add_arrays(ArrayOffsets& memory, int64_t attended, Arrays& arrays) const {
    const size_t element = bytes_of(ops_.compute_type());
    for (const Projections& one : projections_)
      arrays.projected.push_back(memory.add(one.elements(), element));
    arrays.attended = memory.add(attended, element);
  }

  /// Creates one projection for each input. The projection computes all arrays that are made from this input:
  /// the queries, the keys, the values, or several of these arrays.
  void add_projections(const LayerRequest& request, const AttentionShape& shape, bool use_bias,
                       ArrayOffsets& scratch) {
    const size_t step = use_bias ? 2 : 1;  // parameters per kernel
    struct Source {
      ProjectedArray& array;
      size_t input, kernel;
      int64_t width;
    };
    const std::array<Source, 3> sources = {{{query_, 0, 0, shape.query_width()},
                                            {key_, shape.key_input, step, shape.key_width()},
                                            {value_, shape.value_input, 2 * step, shape.value_width()}}};
    for (size_t input = 0; input < request.inputs.size(); ++input) {
      std::vector<Projections::Part> parts;
      int64_t column = 0;
      for (const Source& source : sources) {
        if (source.input != input) continue;
        source.array = {input, column};
        parts.push_back({source.kernel, source.width});
        column += source.width;
      }
      const Shape& x = request.inputs[input].shape;
      projections_.emplace_back(request, Projections::Extent{request.batch * x[0], x[1]}, std::move(parts),
                                use_bias, request.training && request.input_needs_gradient[input], scratch);
    }
  }

  /// Returns the mask of the values or, if they have no mask, the mask of the keys.
  static const uint8_t* key_mask(const LayerArguments& args) {
    const size_t inputs = args.inputs.size();
    const uint8_t* const of_values = args.mask(inputs == 1 ? 0 : 1);
    return of_values ? of_values : args.mask(inputs - 1);
  }

  static bool is_masked(const LayerRequest& request) {
    const size_t inputs = request.inputs.size();
    return request.is_masked(inputs == 1 ? 0 : 1) || request.is_masked(inputs - 1);
  }

  AttentionDropout dropout(const LayerArguments& args) const {
    return {Philox::of(args.seed, stream_), args.step, args.first_sample};
  }

  /// Rotates the queries and keys by their positions. With `inverse`, rotates their gradients in the opposite
  /// direction.
  void rotate(const LayerArguments& args, void* memory, const Arrays& arrays, bool inverse) {
    if (!rotary_) return;
    const auto rotate_heads = [&](const ProjectedArray& array, int64_t positions, int64_t heads) {
      ops_.rotate_positions({.samples = spec_.batch,
                             .positions = positions,
                             .heads = heads,
                             .dim = spec_.key_dim,
                             .step = width_of(array),
                             .base = rotary_->base},
                            part(memory, arrays, array), inverse,
                            static_cast<float*>(array_at(args.scratch, table_)));
    };
    rotate_heads(query_, spec_.queries, spec_.heads);
    rotate_heads(key_, spec_.keys, spec_.kv_heads);
  }

  Ops& ops_;
  std::optional<RotaryOptions> rotary_;
  uint32_t stream_;
  ProjectedArray query_{}, key_{}, value_{};
  std::vector<Projections> projections_;  // one per input
  AttentionSpec spec_;
  std::unique_ptr<Attention> attention_;
  std::unique_ptr<Projections> output_;
  Arrays kept_;                       // offsets in saved memory (training) or scratch memory (otherwise)
  Arrays gradients_;                  // offsets of the gradients, in scratch memory
  size_t table_ = 0, operation_ = 0;  // offsets in scratch memory
};

class MultiHeadAttention : public LayerWith<MultiHeadAttentionOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    if (inputs.empty() || inputs.size() > 3) {
      report_error(
          fmt::format("expected one input, two inputs ([query, value]) or three inputs ([query, value, "
                      "key]), but found {} inputs",
                      inputs.size()));
      return {};
    }
    for (const TensorSpec& input : inputs) {
      if (!float_input({&input, 1}, report_error)) return {};
      if (input.shape.rank() == 2) continue;
      report_error(fmt::format("expected sequences of shape [positions, features], but '{}' has the shape {}",
                               input.name, input.shape.str()));
      return {};
    }
    if (inputs.size() == 3 && inputs[1].shape[0] != inputs[2].shape[0]) {
      report_error(fmt::format(
          "the value '{}' has {}, but the key '{}' has {}; both must have the same "
          "number of positions",
          inputs[1].name, format_plural(inputs[1].shape[0], "position"), inputs[2].name, inputs[2].shape[0]));
      return {};
    }
    return heads_fit(inputs[0], report_error) ? same_as(&inputs[0]) : std::vector<TensorSpec>{};
  }

  std::vector<ParameterSpec> parameters(std::span<const TensorSpec> inputs) const override {
    const AttentionShape shape = this->shape(inputs);
    const int64_t features = inputs[0].shape[1];
    std::vector<ParameterSpec> specs;
    const auto add = [&](const std::string& name, const Shape& kernel, const Shape& bias) {
      specs.push_back(options_.kernel.parameter(name + "/kernel", kernel));
      if (options_.use_bias) specs.push_back(options_.bias.parameter(name + "/bias", bias));
    };
    const auto add_heads = [&](const std::string& name, size_t input, int64_t heads, int64_t dim) {
      add(name, {inputs[input].shape[1], heads, dim}, {heads, dim});
    };
    add_heads("query", 0, shape.heads, shape.key_dim);
    add_heads("key", shape.key_input, shape.kv_heads, shape.key_dim);
    add_heads("value", shape.value_input, shape.kv_heads, shape.value_dim);
    add("attention_output", {shape.heads, shape.value_dim, features}, {features});
    return specs;
  }

  /// Returns false, because Keras applies the penalty not only to the output, but also to queries, keys and
  /// values.
  bool can_penalize_output() const override { return false; }

  /// Masked values are ignored in attention. The output has the mask of the queries.
  MaskRule mask_rule() const override { return MaskRule::read; }
  bool masks_output(size_t) const override { return true; }

  std::shared_ptr<const Layer> step_layer(std::span<const TensorSpec> inputs) const override {
    return has_steps(inputs) ? cached_attention(cached(inputs)) : nullptr;
  }
  int64_t kept_elements(std::span<const TensorSpec> inputs) const override {
    return has_steps(inputs) ? cached(inputs).kept_elements() : 0;
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return std::make_unique<PreparedMultiHeadAttention>(request, shape(request.inputs), options_);
  }

 private:
  AttentionShape shape(std::span<const TensorSpec> inputs) const {
    const int64_t key_dim = options_.key_dim.value_or(inputs[0].shape[1] / options_.num_heads);
    return {.heads = options_.num_heads,
            .kv_heads = options_.num_key_value_heads.value_or(options_.num_heads),
            .key_dim = key_dim,
            .value_dim = options_.value_dim.value_or(key_dim),
            .key_input = inputs.size() - 1,
            .value_input = inputs.size() == 1 ? size_t{0} : size_t{1}};
  }

  /// Returns whether each position of the output depends only on the same position and earlier positions of
  /// the input.
  bool has_steps(std::span<const TensorSpec> inputs) const { return options_.causal && inputs.size() == 1; }

  CachedAttentionOptions cached(std::span<const TensorSpec> inputs) const {
    const AttentionShape shape = this->shape(inputs);
    CachedAttentionOptions cached{.positions = inputs[0].shape[0],
                                  .heads = shape.heads,
                                  .kv_heads = shape.kv_heads,
                                  .key_dim = shape.key_dim,
                                  .value_dim = shape.value_dim,
                                  .use_bias = options_.use_bias,
                                  .rotary_base = {}};
    if (options_.rotary) cached.rotary_base = options_.rotary->base;
    return cached;
  }

  /// Checks the number and the size of the heads: num_heads must divide the width of the query if key_dim is
  /// not set, num_key_value_heads must divide num_heads, and rotary embeddings need an even key_dim. Reports
  /// an error and returns false if a check fails.
  bool heads_fit(const TensorSpec& query, const ReportError& report_error) const {
    const int64_t heads = options_.num_heads, width = query.shape[1];
    if (!options_.key_dim && width % heads != 0) {
      report_error(
          fmt::format("num_heads must divide the width of the input, but num_heads is {} and '{}' has the "
                      "width {}; change num_heads, or set key_dim",
                      heads, query.name, width));
      return false;
    }
    const int64_t kv_heads = options_.num_key_value_heads.value_or(heads);
    if (heads % kv_heads != 0) {
      report_error(fmt::format(
          "num_key_value_heads must divide num_heads, but num_key_value_heads is {} and num_heads is {}",
          kv_heads, heads));
      return false;
    }
    const int64_t key_dim = options_.key_dim.value_or(width / heads);
    if (options_.rotary && key_dim % 2 != 0) {
      report_error(fmt::format("rotary needs an even key_dim, but key_dim is {}", key_dim));
      return false;
    }
    return true;
  }
};

}  // namespace

void add_multi_head_attention(Registry<Layer>& table) {
  table.add<MultiHeadAttention>("multi_head_attention", MultiHeadAttentionOptions::schema());
}

}  // namespace dtrain
