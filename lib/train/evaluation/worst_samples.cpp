#include "train/evaluation/worst_samples.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "device/device.h"
#include "run/probabilities.h"
#include "run/target_scale.h"

namespace dtrain {

namespace {

template <class T>
Json numbers(const T* values, int64_t n, bool scalar) {
  const auto number = [](T value) {
    if constexpr (std::is_same_v<T, int32_t>)
      return Json(static_cast<int64_t>(value));
    else
      return Json(static_cast<double>(value));
  };
  if (scalar) return number(values[0]);
  Json all = Json::array();
  for (int64_t i = 0; i < n; ++i) all.push(number(values[i]));
  return all;
}

View element_of(const View& batch, size_t sample) {
  const auto bytes = batch.bytes() / static_cast<size_t>(batch.shape[0]);
  return {static_cast<std::byte*>(batch.data) + sample * bytes,
          Shape({batch.shape.begin() + 1, batch.shape.end()}).prepended(1), batch.dtype};
}

/// Orders by descending loss, with NaN first, and then by row.
bool is_worse(const WorstSample& a, const WorstSample& b) {
  if (std::isnan(a.loss) != std::isnan(b.loss)) return std::isnan(a.loss);
  if (a.loss != b.loss && !std::isnan(a.loss)) return a.loss > b.loss;
  return a.row < b.row;
}

}  // namespace

/// Computes the loss and the description of samples, for one output.
class WorstSamples::HeadErrors {
 public:
  HeadErrors(const RunConfig& config, size_t head)
      : head_(config.heads[head]), output_(config.graph.spec(head_.output)), scale_(config, head) {}

  double loss(Ops& ops, const HeadBatch& batch, size_t sample) const {
    const int64_t columns = output_.shape.columns(), rows = output_.shape.positions();
    double total = 0;
    head_.loss->run(ops, {.prediction = output_of(batch, sample).data(),
                          .target = element_of(batch.target, sample),
                          .total = &total,
                          .rows = rows,
                          .columns = columns,
                          .positions = rows});
    return head_.loss->weight() * total / static_cast<double>(rows);
  }
  Json describe(const HeadBatch& batch, size_t sample) const {
    const View target_view = element_of(batch.target, sample);
    const int64_t n = output_.shape.elements(), target_n = target_view.elements();
    const std::span<const float> output = output_of(batch, sample);
    std::vector<float> outputs(output.begin(), output.end());
    if (scale_.is_scaled()) make_probabilities(head_.loss->takes(), outputs, output_.shape.columns());
    const std::vector<double> scores = scale_.undone(outputs);
    const auto best = [](const std::vector<double>& values) {
      return Json(std::max_element(values.begin(), values.end()) - values.begin());
    };
    // The output has one row per sample, and the class is the index of the row's largest column.
    const bool is_class =
        head_.loss->tells_classes() && !head_.loss->is_of_columns() && output_.shape.rank() == 1;
    Json described = Json::object();
    if (head_.target.dtype == DType::int32) {
      described.set("target", numbers(static_cast<const int32_t*>(target_view.data), target_n,
                                      head_.target.shape.rank() == 0));
    } else {
      const float* first = static_cast<const float*>(target_view.data);
      const std::vector<double> target = scale_.undone({first, first + target_n});
      described.set("target", is_class ? best(target) : numbers(target.data(), target_n, target_n == 1));
    }
    described.set("prediction", is_class ? best(scores) : numbers(scores.data(), n, n == 1));
    if (is_class) described.set("scores", numbers(scores.data(), n, false));
    return described;
  }

 private:
  std::span<const float> output_of(const HeadBatch& batch, size_t sample) const {
    const auto elements = static_cast<size_t>(output_.shape.elements());
    return batch.output.subspan(sample * elements, elements);
  }

  const Head& head_;
  const TensorSpec& output_;
  TargetScale scale_;
};

WorstSamples::WorstSamples(const RunConfig& config, const Dataset& data, size_t count)
    : data_(data),
      count_(count),
      context_(make_cpu_context({}, {available_cores().front()}, false)),
      ops_(make_cpu_ops(*context_)) {
  for (size_t head = 0; head < config.heads.size(); ++head) heads_.emplace_back(config, head);
}

WorstSamples::~WorstSamples() = default;

void WorstSamples::visit(const PredictedBatch& batch) {
  for (size_t s = 0; s < batch.rows.size(); ++s) {
    WorstSample sample{batch.rows[s], "", 0, {}};
    for (size_t i = 0; i < heads_.size(); ++i) sample.loss += heads_[i].loss(*ops_, batch.heads[i], s);
    if (samples_.size() == count_ && !is_worse(sample, samples_.back())) continue;
    sample.id = data_.sample_id(sample.row);
    for (size_t i = 0; i < heads_.size(); ++i)
      sample.outputs.push_back(heads_[i].describe(batch.heads[i], s));
    samples_.insert(std::upper_bound(samples_.begin(), samples_.end(), sample, is_worse), std::move(sample));
    if (samples_.size() > count_) samples_.pop_back();
  }
}

std::optional<std::vector<WorstSample>> worst_samples(const RunConfig& config, Engine& engine,
                                                      const std::shared_ptr<const Dataset>& data,
                                                      int64_t batch_size, size_t count,
                                                      const std::function<bool()>& should_stop) {
  WorstSamples worst(config, *data, count);
  PredictionVisitor* const visitors[] = {&worst};
  if (!visit_predictions(config, engine, data, batch_size, visitors, should_stop)) return std::nullopt;
  return worst.take();
}

}  // namespace dtrain
