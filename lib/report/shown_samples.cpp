#include "report/shown_samples.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "report/input_pictures.h"
#include "run/row_weights.h"
#include "train/evaluation/worst_samples.h"

namespace dtrain {

namespace {

constexpr int64_t kShown = 12, kLookedAt = 1000, kMostPixels = 128;

/// A dataset of evenly spaced rows of another dataset. The other dataset must outlive this object.
class SpreadRows final : public Dataset {
 public:
  SpreadRows(const Dataset& all, int64_t count) : all_(all) {
    for (int64_t i = 0; i < count; ++i) rows_.push_back(i * all.size() / count);
  }

  int64_t size() const override { return static_cast<int64_t>(rows_.size()); }
  const std::vector<TensorSpec>& columns() const override { return all_.columns(); }
  void read(const Samples& samples, std::span<const View> dst) const override {
    const std::vector<int64_t> rows = rows_of(samples);
    all_.read({rows, samples.seed, samples.epoch}, dst);
  }
  void read_column(size_t index, const Samples& samples, void* dst) const override {
    const std::vector<int64_t> rows = rows_of(samples);
    all_.read_column(index, {rows, samples.seed, samples.epoch}, dst);
  }
  std::string sample_id(int64_t index) const override { return all_.sample_id(row(index)); }
  bool in_memory() const override { return all_.in_memory(); }
  bool is_costly() const override { return all_.is_costly(); }
  size_t working_bytes(int64_t samples) const override { return all_.working_bytes(samples); }

  int64_t row(int64_t index) const { return rows_[static_cast<size_t>(index)]; }

 private:
  std::vector<int64_t> rows_of(const Samples& samples) const {
    std::vector<int64_t> rows;
    for (const int64_t index : samples.rows) rows.push_back(row(index));
    return rows;
  }

  const Dataset& all_;
  std::vector<int64_t> rows_;
};

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t count = std::min<size_t>(bytes.size() - at, 3);
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i)
      bits = bits << 8 | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    for (size_t i = 0; i < 4; ++i) text += i <= count ? kDigits[bits >> (18 - 6 * i) & 63U] : '=';
  }
  return text;
}

/// Returns the class name if `value` is a class index. Other values are returned unchanged.
Json named(const Json& value, const std::vector<std::string>& names) {
  if (!value.is_int() || value.as_int() < 0 || value.as_int() >= static_cast<int64_t>(names.size()))
    return value;
  return names[static_cast<size_t>(value.as_int())];
}

Json describe(const RunConfig& config, const Dataset& data, const SpreadRows& rows,
              const WorstSample& sample) {
  Json outputs = Json::array(), pictures = Json::array();
  for (size_t head = 0; head < sample.outputs.size(); ++head) {
    const std::vector<std::string> names = class_names(config, config.dataset.facts, head);
    Json output = Json::object();
    if (sample.outputs.size() > 1)
      output.set("output", config.graph.layer_name(config.heads[head].output.node));
    for (const char* key : {"target", "prediction"}) {
      const Json& value = sample.outputs[head].at(key);
      if (!value.is_array()) output.set(key, named(value, names));
    }
    outputs.push(std::move(output));
  }
  for (size_t column = 0; column < config.graph.inputs.size(); ++column) {
    if (!is_picture_input(data.columns()[column])) continue;
    const Picture picture =
        read_picture(data, column, rows.row(sample.row), static_cast<uint64_t>(config.seed))
            .reduced(kMostPixels);
    pictures.push("data:image/png;base64," + base64(picture.png()));
  }
  return Json::object()
      .set("id", sample.id)
      .set("loss", sample.loss)
      .set("outputs", std::move(outputs))
      .set("pictures", std::move(pictures));
}

/// Examines `rows` evenly spaced samples, and returns the `count` samples with the largest losses among them.
/// If `by_row` is true, the result is sorted by row. Returns null if `should_stop` has returned true.
Json worst_of(const RunConfig& config, Engine& engine, const Dataset& data, int64_t rows, int64_t count,
              bool by_row, const std::function<bool()>& should_stop) {
  const auto spread = std::make_shared<const SpreadRows>(data, rows);
  auto samples = worst_samples(config, engine, spread, std::min(config.train.batch_size, rows),
                               static_cast<size_t>(count), should_stop);
  if (!samples) return {};
  if (by_row)
    std::sort(samples->begin(), samples->end(), [](const auto& a, const auto& b) { return a.row < b.row; });
  Json list = Json::array();
  for (const WorstSample& sample : *samples) list.push(describe(config, data, *spread, sample));
  return list;
}

}  // namespace

Json show_samples(const RunConfig& config, Engine& engine, const Dataset& data, const std::string& split,
                  const std::function<bool()>& should_stop) {
  const auto first = data.columns().begin();
  const auto inputs = static_cast<std::ptrdiff_t>(config.graph.inputs.size());
  if (data.size() == 0 || std::none_of(first, first + inputs, is_picture_input)) return {};
  const int64_t looked_at = std::min(data.size(), kLookedAt), shown = std::min(data.size(), kShown);
  const bool averaged = engine.state().has_average();
  if (averaged) engine.state().swap_average();
  Json samples, worst;
  try {
    samples = worst_of(config, engine, data, shown, shown, true, should_stop);
    worst = worst_of(config, engine, data, looked_at, shown, false, should_stop);
  } catch (...) {
    if (averaged) engine.state().swap_average();
    throw;
  }
  if (averaged) engine.state().swap_average();
  if (samples.is_null() || worst.is_null()) return {};
  return Json::object()
      .set("split", split)
      .set("of", looked_at)
      .set("samples", std::move(samples))
      .set("worst", std::move(worst));
}

}  // namespace dtrain
