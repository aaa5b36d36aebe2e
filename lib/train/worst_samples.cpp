#include "train/worst_samples.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "data/loader.h"
#include "device/device.h"
#include "train/target_scale.h"

namespace dtrain {

namespace {

/// The inputs of a data set, without its targets.
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

/// One output's predictions and targets of a batch.
class HeadErrors {
 public:
  HeadErrors(const RunConfig& config, size_t head, int64_t batch_size)
      : head_(config.heads[head]),
        output_(config.graph.spec(head_.output)),
        target_column_(config.graph.inputs.size() + head),
        scale_(config, head),
        predictions_(static_cast<size_t>(batch_size) * elements(output_)),
        targets_(static_cast<size_t>(batch_size) * elements(head_.target)) {}

  View predictions(int64_t samples) {
    return {predictions_.data(), output_.shape.prepended(samples), DType::float32};
  }
  void read_targets(const Dataset& data, const Samples& samples) {
    data.read_column(target_column_, samples, targets_.data());
  }
  double loss(Ops& ops, size_t sample) {
    const int64_t columns = output_.shape.columns(), rows = output_.shape.positions();
    double total = 0;
    head_.loss->run(ops, {.prediction = predictions_.data() + sample * elements(output_),
                          .target = {targets_.data() + sample * elements(head_.target),
                                     head_.target.shape.prepended(1), head_.target.dtype},
                          .total = &total,
                          .rows = rows,
                          .columns = columns});
    return head_.loss->weight() * total / static_cast<double>(rows);
  }
  Json describe(size_t sample) const {
    const int64_t n = output_.shape.elements(), target_n = head_.target.shape.elements();
    std::vector<float> scores = row_of(predictions_, sample, n), target = row_of(targets_, sample, target_n);
    scale_.undo(scores.data(), n);
    scale_.undo(target.data(), target_n);
    const auto best = [](const std::vector<float>& values) {
      return Json(std::max_element(values.begin(), values.end()) - values.begin());
    };
    // One row, of which the greatest column is the class.
    const bool is_class =
        head_.loss->tells_classes() && !head_.loss->is_of_columns() && output_.shape.rank() == 1;
    const bool is_number = head_.target.dtype == DType::int32;
    Json described = Json::object();
    described.set("target", is_number  ? numbers(reinterpret_cast<const int32_t*>(target.data()), target_n,
                                                 head_.target.shape.rank() == 0)
                            : is_class ? best(target)
                                       : numbers(target.data(), target_n, target_n == 1));
    described.set("prediction", is_class ? best(scores) : numbers(scores.data(), n, n == 1));
    if (is_class) described.set("scores", numbers(scores.data(), n, false));
    return described;
  }

 private:
  static std::vector<float> row_of(const std::vector<float>& rows, size_t row, int64_t elements) {
    const auto first = rows.begin() + static_cast<ptrdiff_t>(row) * elements;
    return {first, first + elements};
  }
  static size_t elements(const TensorSpec& spec) { return static_cast<size_t>(spec.shape.elements()); }

  const Head& head_;
  const TensorSpec& output_;
  size_t target_column_;
  TargetScale scale_;
  std::vector<float> predictions_, targets_;  // both types of targets have elements of this size
};

/// The greatest losses come first, and those that are no numbers before them.
bool is_worse(const WorstSample& a, const WorstSample& b) {
  if (std::isnan(a.loss) != std::isnan(b.loss)) return std::isnan(a.loss);
  if (a.loss != b.loss && !std::isnan(a.loss)) return a.loss > b.loss;
  return a.row < b.row;
}

}  // namespace

std::optional<std::vector<WorstSample>> worst_samples(const RunConfig& config, Replicas& replicas,
                                                      const std::shared_ptr<const Dataset>& data,
                                                      int64_t batch_size, size_t count,
                                                      const std::function<bool()>& is_to_end) {
  const auto context = make_cpu_context({}, {available_cores().front()}, false);
  const auto ops = make_cpu_ops(*context);
  std::vector<HeadErrors> heads;
  for (size_t head = 0; head < config.heads.size(); ++head) heads.emplace_back(config, head, batch_size);
  Loader loader(std::make_shared<InputsOf>(data, config.graph.inputs.size()),
                {.batch_size = batch_size, .prefetch = config.dataset.prefetch});
  std::vector<WorstSample> worst;
  int64_t first = 0;
  loader.begin(0, 0);
  while (const auto batch = loader.next()) {
    if (is_to_end()) return std::nullopt;
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < batch->size(); ++i) rows.push_back(first + i);
    std::vector<View> views;
    for (HeadErrors& head : heads) {
      views.push_back(head.predictions(batch->size()));
      head.read_targets(*data, {rows});
    }
    replicas.predict(*batch, views);
    for (size_t s = 0; s < rows.size(); ++s) {
      WorstSample sample{rows[s], "", 0, {}};
      for (HeadErrors& head : heads) sample.loss += head.loss(*ops, s);
      if (worst.size() == count && !is_worse(sample, worst.back())) continue;
      sample.id = data->sample_id(rows[s]);
      for (const HeadErrors& head : heads) sample.outputs.push_back(head.describe(s));
      worst.insert(std::upper_bound(worst.begin(), worst.end(), sample, is_worse), std::move(sample));
      if (worst.size() > count) worst.pop_back();
    }
    first += batch->size();
  }
  return worst;
}

}  // namespace dtrain
