#include "generate/next_token.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace dtrain {

namespace {

/// A batch whose columns are int32 arrays in memory.
class NumberBatch final : public Batch {
 public:
  /// The columns have `texts` rows.
  NumberBatch(int64_t texts, std::initializer_list<std::span<const int32_t>> columns)
      : texts_(texts), columns_(columns) {}

  int64_t size() const override { return texts_; }
  void read(int64_t first, int64_t count, std::span<const View> dst) const override {
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (!dst[i].data) continue;
      const int64_t width = static_cast<int64_t>(columns_[i].size()) / texts_;
      std::copy_n(columns_[i].data() + first * width, count * width, dst[i].as<int32_t>());
    }
  }

 private:
  int64_t texts_;
  std::vector<std::span<const int32_t>> columns_;
};

/// Converts the model's outputs to logits.
void make_logits(const LanguageModel& model, std::span<float> scores) {
  if (!model.gives_probabilities) return;
  for (float& score : scores) score = std::log(score);
}

}  // namespace

WindowScores::WindowScores(const LanguageModel& model, Engine& engine, int64_t texts)
    : model_(model),
      engine_(engine),
      windows_(static_cast<size_t>(texts * model.positions)),
      outputs_(static_cast<size_t>(texts * model.positions * model.columns)),
      last_(static_cast<size_t>(texts * model.columns)) {}

std::span<const float> WindowScores::scores(std::span<const std::vector<int32_t>> texts) {
  const int64_t positions = model_.positions, columns = model_.columns;
  std::fill(windows_.begin(), windows_.end(), 0);
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto tokens = static_cast<int64_t>(texts[i].size());
    const int64_t begin = window_begin(tokens, positions);
    std::copy(texts[i].begin() + begin, texts[i].end(),
              windows_.begin() + static_cast<int64_t>(i) * positions);
    lengths.push_back(tokens - begin);
  }
  const auto count = static_cast<int64_t>(texts.size());
  const View view{outputs_.data(), Shape{count, positions, columns}};
  engine_.predict(NumberBatch(count, {windows_}), {&view, 1});
  for (size_t i = 0; i < texts.size(); ++i) {
    const int64_t row = static_cast<int64_t>(i) * positions + lengths[i] - 1;
    std::copy_n(outputs_.begin() + row * columns, columns, last_.begin() + static_cast<int64_t>(i) * columns);
  }
  make_logits(model_, last_);
  return last_;
}

StepScores::StepScores(const LanguageModel& model, Engine& engine, int64_t texts)
    : model_(model),
      engine_(engine),
      seen_(static_cast<size_t>(texts)),
      tokens_(static_cast<size_t>(texts)),
      positions_(static_cast<size_t>(texts)),
      outputs_(static_cast<size_t>(texts * model.columns)) {}

void StepScores::begin() {
  std::fill(seen_.begin(), seen_.end(), Seen());
}

/// The model runs the same number of steps for all texts. If a text has fewer new tokens than another text,
/// the model computes the last position of this text again, which gives the same scores.
std::span<const float> StepScores::scores(std::span<const std::vector<int32_t>> texts) {
  int64_t steps = 1;
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto tokens = static_cast<int64_t>(texts[i].size());
    const int64_t begin = window_begin(tokens, model_.positions);
    if (begin != seen_[i].begin) seen_[i] = {begin, begin};
    steps = std::max(steps, tokens - seen_[i].end);
  }
  const auto count = static_cast<int64_t>(texts.size());
  const View view{outputs_.data(), Shape{count, 1, model_.columns}};
  for (int64_t step = 0; step < steps; ++step) {
    for (size_t i = 0; i < texts.size(); ++i) {
      Seen& seen = seen_[i];
      const int64_t token = std::min(seen.end, static_cast<int64_t>(texts[i].size()) - 1);
      tokens_[i] = texts[i][static_cast<size_t>(token)];
      positions_[i] = static_cast<int32_t>(token - seen.begin);
      seen.end = token + 1;
    }
    engine_.predict(NumberBatch(count, {tokens_, positions_}), {&view, 1});
  }
  make_logits(model_, outputs_);
  return outputs_;
}

}  // namespace dtrain
