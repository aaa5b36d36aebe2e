#include "engine/step_weights.h"

#include <span>
#include <stdexcept>

#include "nn/divisors.h"
#include "nn/shorter_model.h"

namespace dtrain {

StepWeights::StepWeights(const RunConfig& config)
    : config_(config), needs_divisors_(needs_divisors(config.graph, config.heads)) {}

const std::vector<int64_t>& StepWeights::per_sample(int64_t length) {
  const auto [found, is_new] = per_sample_.try_emplace(length);
  if (is_new) {
    const auto add_counts = [&counts = found->second](const std::vector<Head>& heads) {
      for (const Head& head : heads) counts.push_back(head.weights_per_sample());
    };
    add_counts(length == 0 ? config_.heads : shorter_model(config_.graph, config_.heads, length).heads);
  }
  return found->second;
}

void StepWeights::set(StepRequest& request) {
  const Batch& batch = request.batch;
  const std::vector<int64_t>& counts = per_sample(batch.length());
  if (!needs_divisors_) {
    request.numbers.row_weights = static_cast<double>(batch.size() * counts[0]);
    return;
  }
  const std::span<const double> sums = batch.weight_sums();
  if (sums.size() != config_.heads.size())
    throw std::logic_error("the sums of the row weights are not available for this batch");
  request.numbers.row_weights = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    const bool corrects = config_.heads[i].is_weighted() && sums[i] > 0;
    const auto count = static_cast<double>(batch.size() * counts[i]);
    request.loss_factors.push_back(corrects ? static_cast<float>(count / sums[i]) : 1.0f);
    request.numbers.row_weights += sums[i];
  }
}

}  // namespace dtrain
