#include "nn/metrics/counted.h"

#include <cmath>

namespace dtrain {

ScoreReading ScoreReading::of(const Loss& loss) {
  return {loss.takes(), loss.takes() != Scores::any && loss.is_of_columns()};
}

CountSpec::Scores ScoreReading::counted(int64_t columns) const {
  if (scores == Scores::softmax_logits && columns > 1) return CountSpec::Scores::softmax_logits;
  const bool logits = scores == Scores::softmax_logits || scores == Scores::sigmoid_logits;
  return logits ? CountSpec::Scores::sigmoid_logits : CountSpec::Scores::probabilities;
}

float ScoreReading::threshold(double probability, int64_t columns) const {
  if (counted(columns) != CountSpec::Scores::sigmoid_logits) return static_cast<float>(probability);
  return static_cast<float>(std::log(probability) - std::log1p(-probability));
}

}  // namespace dtrain
