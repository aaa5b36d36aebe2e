// Probabilities from the scores that a model puts out.
#pragma once

#include <cstdint>
#include <span>

#include "nn/loss.h"

namespace dtrain {

/// Whether the scores are logits, from which make_probabilities() computes others.
bool are_logits(Scores scores);

/// Replaces logits in place by their probabilities: each by its sigmoid, or each row of `columns` by its
/// softmax (a single column by its sigmoid). Other scores stay as they are.
void make_probabilities(Scores scores, std::span<float> values, int64_t columns);

}  // namespace dtrain
