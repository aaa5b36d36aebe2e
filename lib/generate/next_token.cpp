#include "generate/next_token.h"

#include <algorithm>
#include <cmath>

namespace dtrain {

namespace {

/// Rows of tokens in memory.
class TokenBatch final : public Batch {
 public:
  TokenBatch(std::span<const int32_t> tokens, int64_t columns) : tokens_(tokens), columns_(columns) {}

  int64_t size() const override { return static_cast<int64_t>(tokens_.size()) / columns_; }
  void read(int64_t first, int64_t count, std::span<const View> dst) const override {
    if (dst[0].data) std::copy_n(tokens_.data() + first * columns_, count * columns_, dst[0].as<int32_t>());
  }

 private:
  std::span<const int32_t> tokens_;
  int64_t columns_;
};

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
    const auto count = static_cast<int64_t>(texts[i].size());
    const int64_t begin = window_begin(count, positions);
    std::copy(texts[i].begin() + begin, texts[i].end(),
              windows_.begin() + static_cast<int64_t>(i) * positions);
    lengths.push_back(count - begin);
  }
  const View view{outputs_.data(), Shape{static_cast<int64_t>(texts.size()), positions, columns}};
  engine_.predict(TokenBatch(windows_, positions), {&view, 1});
  for (size_t i = 0; i < texts.size(); ++i) {
    const int64_t row = static_cast<int64_t>(i) * positions + lengths[i] - 1;
    std::copy_n(outputs_.begin() + row * columns, columns, last_.begin() + static_cast<int64_t>(i) * columns);
  }
  if (model_.gives_probabilities)
    for (float& score : last_) score = std::log(score);
  return last_;
}

}  // namespace dtrain
