#include "run/probabilities.h"

#include <algorithm>
#include <cmath>

namespace dtrain {

namespace {

float sigmoid(float logit) {
  return static_cast<float>(1 / (1 + std::exp(-static_cast<double>(logit))));
}

void softmax(std::span<float> row) {
  const auto most = static_cast<double>(*std::max_element(row.begin(), row.end()));
  double sum = 0;
  for (const float logit : row) sum += std::exp(static_cast<double>(logit) - most);
  for (float& logit : row) logit = static_cast<float>(std::exp(static_cast<double>(logit) - most) / sum);
}

}  // namespace

bool are_logits(Scores scores) {
  return scores == Scores::sigmoid_logits || scores == Scores::softmax_logits;
}

void make_probabilities(Scores scores, std::span<float> values, int64_t columns) {
  if (!are_logits(scores)) return;
  if (scores == Scores::sigmoid_logits || columns == 1) {
    for (float& value : values) value = sigmoid(value);
    return;
  }
  const auto width = static_cast<size_t>(columns);
  for (size_t at = 0; at + width <= values.size(); at += width) softmax(values.subspan(at, width));
}

}  // namespace dtrain
