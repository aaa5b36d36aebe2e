// position_embedding and sinusoidal_position_encoding. Both layers add a vector to each position of a
// sequence. The vector depends on the position.
#include <functional>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "nn/layers/common.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

/// Returns the only input if its shape is [positions, features]; null after reporting an error.
const TensorSpec* sequence_input(std::span<const TensorSpec> inputs, const ReportError& report_error) {
  const TensorSpec* input = float_input(inputs, report_error);
  if (!input || input->shape.rank() == 2) return input;
  report_error(fmt::format("expected sequences of shape [positions, features], but '{}' has the shape {}",
                           input->name, input->shape.str()));
  return nullptr;
}

struct PositionEmbeddingOptions {
  int64_t sequence_length = 0;
  Configured<Initializer> initializer = registry<Initializer>().make("glorot_uniform");

  static const Schema<PositionEmbeddingOptions>& schema() {
    using O = PositionEmbeddingOptions;
    static const auto schema =
        Schema<O>("Adds a trained vector to each position of a sequence. Each position has its own vector.")
            .example("{sequence_length: 128}")
            .required("sequence_length", &O::sequence_length,
                      "number of vectors, which is the maximum length of a sequence", extent())
            .optional("initializer", &O::initializer, "initial values of the vectors")
            .details({"initializer"});
    return schema;
  }
};

class PreparedPositionEmbedding : public PreparedLayer {
 public:
  PreparedPositionEmbedding(const LayerRequest& request, int64_t sequence_length)
      : ops_(request.ops),
        batch_(request.batch),
        per_sample_(request.output().shape.elements()),
        unused_((sequence_length - request.output().shape[0]) * request.output().shape[1]) {
    requirements_.forward_in_place = true;
    requirements_.backward_in_place = true;
  }

  void forward(const LayerArguments& args) override {
    ops_.add_bias(args.output(), args.input(), args.weights[0], batch_, per_sample_);
  }

  void backward(const LayerArguments& args) override {
    if (float* const diff = args.diff_parameters[0]) {
      ops_.column_sum(diff, args.diff_output(), batch_, per_sample_);
      ops_.fill(diff + per_sample_, 0, unused_);
    }
    if (args.diff_inputs[0]) ops_.copy(args.diff_inputs[0], args.diff_output(), batch_ * per_sample_);
  }

 private:
  Ops& ops_;
  int64_t batch_, per_sample_;
  // Number of elements in the unused position vectors. Vectors are unused if the sequences are shorter than
  // the maximum length.
  int64_t unused_;
};

/// Adds the position vector to each sample. Each sample has one position per call.
class PreparedPositionStep : public PreparedLayer {
 public:
  /// Writes the vectors of the positions `at` to `dst`, which has the shape [batch, features].
  using WriteVectors = std::function<void(const LayerArguments& args, const int32_t* at, void* dst)>;

  PreparedPositionStep(const LayerRequest& request, WriteVectors write)
      : ops_(request.ops), write_(std::move(write)), n_(batch_elements(request, request.output().shape)) {
    requirements_.scratch_bytes = static_cast<size_t>(n_) * bytes_of(ops_.compute_type());
  }

  void forward(const LayerArguments& args) override {
    write_(args, static_cast<const int32_t*>(args.inputs.back()), args.scratch);
    ops_.add_bias(args.output(), args.input(), args.scratch, 1, n_);
  }

 private:
  Ops& ops_;
  WriteVectors write_;
  int64_t n_;
};

/// The step layer (Layer::step_layer()) of position_embedding and sinusoidal_position_encoding.
class PositionStep : public Layer {
 public:
  /// `prepare_write` takes a request and returns the function that writes the position vectors.
  explicit PositionStep(
      std::function<PreparedPositionStep::WriteVectors(const LayerRequest& request)> prepare_write)
      : prepare_write_(std::move(prepare_write)) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs, const ReportError&) const override {
    return same_as(&inputs[0]);
  }
  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return std::make_unique<PreparedPositionStep>(request, prepare_write_(request));
  }

 private:
  std::function<PreparedPositionStep::WriteVectors(const LayerRequest& request)> prepare_write_;
};

class PositionEmbedding : public LayerWith<PositionEmbeddingOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    const TensorSpec* input = sequence_input(inputs, report_error);
    if (!input || input->shape[0] <= options_.sequence_length) return same_as(input);
    report_error(
        fmt::format("sequence_length is {}, but the input '{}' has {} positions; increase sequence_length",
                    options_.sequence_length, input->name, input->shape[0]));
    return {};
  }

  std::vector<ParameterSpec> parameters(std::span<const TensorSpec> inputs) const override {
    return {{"embeddings", {options_.sequence_length, inputs[0].shape[1]}, options_.initializer, {}}};
  }

  MaskRule mask_rule() const override { return MaskRule::passed; }

  std::shared_ptr<const Layer> step_layer(std::span<const TensorSpec> inputs) const override {
    return std::make_shared<PositionStep>(
        [vectors = options_.sequence_length, features = inputs[0].shape[1]](const LayerRequest& request) {
          return [=, &ops = request.ops, batch = request.batch](const LayerArguments& args, const int32_t* at,
                                                                void* dst) {
            ops.embedding_forward(args.parameters[0], at, dst, batch, vectors, features);
          };
        });
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return std::make_unique<PreparedPositionEmbedding>(request, options_.sequence_length);
  }
};

struct SinusoidalOptions {
  double max_wavelength = 10000;

  static const Schema<SinusoidalOptions>& schema() {
    using O = SinusoidalOptions;
    static const auto schema =
        Schema<O>(
            "Adds a fixed encoding of the position to each position of a sequence (Vaswani et al. 2017). "
            "Features with even indices get the sine of an angle, and features with odd indices get the "
            "cosine. The angle is proportional to the position.")
            .optional("max_wavelength", &O::max_wavelength,
                      "Determines the angles. If there are n features, the features 2i and 2i + 1 have the "
                      "angle position * max_wavelength^(-2i / n).",
                      greater_than(0.0))
            .details({"max_wavelength"});
    return schema;
  }
};

class PreparedSinusoidal : public PreparedLayer {
 public:
  PreparedSinusoidal(const LayerRequest& request, double max_wavelength)
      : ops_(request.ops),
        batch_(request.batch),
        positions_(request.output().shape[0]),
        features_(request.output().shape[1]),
        max_wavelength_(max_wavelength) {
    requirements_.forward_in_place = true;
    requirements_.passes_gradient = true;
    requirements_.scratch_bytes = static_cast<size_t>(positions_ * features_) * bytes_of(ops_.compute_type());
  }

  void forward(const LayerArguments& args) override {
    ops_.sinusoidal_positions(args.scratch, nullptr, positions_, features_, max_wavelength_);
    ops_.add_bias(args.output(), args.input(), args.scratch, batch_, positions_ * features_);
  }

 private:
  Ops& ops_;
  int64_t batch_, positions_, features_;
  double max_wavelength_;
};

class SinusoidalPositionEncoding : public LayerWith<SinusoidalOptions> {
 public:
  using LayerWith::LayerWith;

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override {
    return same_as(sequence_input(inputs, report_error));
  }

  MaskRule mask_rule() const override { return MaskRule::passed; }

  std::shared_ptr<const Layer> step_layer(std::span<const TensorSpec> inputs) const override {
    return std::make_shared<PositionStep>(
        [wavelength = options_.max_wavelength, features = inputs[0].shape[1]](const LayerRequest& request) {
          return [=, &ops = request.ops, batch = request.batch](const LayerArguments&, const int32_t* at,
                                                                void* dst) {
            ops.sinusoidal_positions(dst, at, batch, features, wavelength);
          };
        });
  }

  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override {
    return std::make_unique<PreparedSinusoidal>(request, options_.max_wavelength);
  }
};

}  // namespace

void add_position_embedding(Registry<Layer>& table) {
  table.add<PositionEmbedding>("position_embedding", PositionEmbeddingOptions::schema());
  table.add<SinusoidalPositionEncoding>("sinusoidal_position_encoding", SinusoidalOptions::schema());
}

}  // namespace dtrain
