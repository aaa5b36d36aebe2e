#include "train/evaluation/predicted_batches.h"

#include "data/columns/column.h"
#include "data/loader/loader.h"

namespace dtrain {

namespace {

/// A view of a data set with only its input columns.
class InputsOf final : public Dataset {
 public:
  InputsOf(std::shared_ptr<const Dataset> data, size_t inputs)
      : data_(std::move(data)),
        columns_(data_->columns().begin(), data_->columns().begin() + static_cast<int64_t>(inputs)) {}

  int64_t size() const override { return data_->size(); }
  const std::vector<TensorSpec>& columns() const override { return columns_; }
  void read(const Samples& samples, std::span<const View> dst) const override {
    for (size_t i = 0; i < columns_.size(); ++i)
      if (dst[i].data) data_->read_column(i, samples, dst[i].data);
  }
  void read_column(size_t index, const Samples& samples, void* dst) const override {
    data_->read_column(index, samples, dst);
  }
  bool in_memory() const override { return data_->in_memory(); }
  bool is_costly() const override { return data_->is_costly(); }
  size_t working_bytes(int64_t samples) const override { return data_->working_bytes(samples); }

 private:
  std::shared_ptr<const Dataset> data_;
  std::vector<TensorSpec> columns_;
};

/// Host arrays of one output, for batches of up to `batch_size` samples.
class HeadArrays {
 public:
  HeadArrays(const RunConfig& config, size_t head, int64_t batch_size)
      : output_(config.graph.spec(config.heads[head].output)),
        target_(config.heads[head].target),
        weights_(config.heads[head].weights),
        target_column_(config.graph.inputs.size() + head),
        weights_column_(config.graph.inputs.size() + config.heads.size()),
        output_values_(size_of(output_, batch_size)),
        target_values_(size_of(target_, batch_size)),
        weight_values_(weights_ ? size_of(*weights_, batch_size) : 0) {}

  View output_view(int64_t samples) { return {output_values_.data(), output_.shape.prepended(samples)}; }

  /// Reads the targets and weights of these samples. The outputs must have been computed.
  HeadBatch read(const Dataset& data, const Samples& samples) {
    const auto count = static_cast<int64_t>(samples.size());
    data.read_column(target_column_, samples, target_values_.data());
    HeadBatch batch{std::span(output_values_).first(size_of(output_, count)),
                    {target_values_.data(), target_.shape.prepended(count), target_.dtype},
                    {}};
    if (!weights_) return batch;
    data.read_column(weights_column_, samples, weight_values_.data());
    batch.weights = std::span(weight_values_).first(size_of(*weights_, count));
    return batch;
  }

 private:
  static size_t size_of(const TensorSpec& spec, int64_t samples) {
    return static_cast<size_t>(spec.shape.elements() * samples);
  }

  const TensorSpec& output_;
  const TensorSpec& target_;
  const std::optional<TensorSpec>& weights_;
  size_t target_column_, weights_column_;
  // Both types of targets (float32 and int32) have elements of four bytes.
  std::vector<float> output_values_, target_values_, weight_values_;
};

}  // namespace

bool visit_predictions(const RunConfig& config, Engine& engine, const std::shared_ptr<const Dataset>& data,
                       int64_t batch_size, std::span<PredictionVisitor* const> visitors,
                       const std::function<bool()>& should_stop) {
  std::vector<HeadArrays> heads;
  for (size_t head = 0; head < config.heads.size(); ++head) heads.emplace_back(config, head, batch_size);
  Loader loader(std::make_shared<InputsOf>(data, config.graph.inputs.size()),
                {.batch_size = batch_size, .prefetch = config.dataset.prefetch});
  int64_t first = 0;
  loader.begin(0, 0);
  while (const auto batch = loader.next()) {
    if (should_stop()) return false;
    const std::vector<int64_t> rows = row_numbers(first, batch->size());
    first += batch->size();
    std::vector<View> views;
    for (HeadArrays& head : heads) views.push_back(head.output_view(batch->size()));
    engine.predict(*batch, views);
    PredictedBatch predicted{rows, {}};
    for (HeadArrays& head : heads) predicted.heads.push_back(head.read(*data, {rows}));
    for (PredictionVisitor* visitor : visitors) visitor->visit(predicted);
  }
  return true;
}

}  // namespace dtrain
