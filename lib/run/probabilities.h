// Computes probabilities from a model's scores.
#pragma once

#include <cstdint>
#include <span>

#include "nn/loss.h"

namespace dtrain {

/// Returns whether the scores are logits, which make_probabilities() converts.
bool are_logits(Scores scores);

/// Replaces logits by probabilities in place: sigmoid of each value, or softmax of each row of `columns`
/// values (sigmoid for a single column). Other scores are unchanged.
void make_probabilities(Scores scores, std::span<float> values, int64_t columns);

}  // namespace dtrain
