#include "nn/head.h"

#include <algorithm>

namespace dtrain {

int64_t Head::weights_per_sample() const {
  return std::max(weights ? weights->shape.elements() : 0, mask ? mask->shape.elements() : 0);
}

int64_t Head::count_totals() const {
  int64_t count = 1 + (is_weighted() ? 1 : 0) + (weights && mask ? 1 : 0);
  for (const HeadMetric& metric : metrics) count += metric.sums;
  return count;
}

size_t count_totals(std::span<const Head> heads) {
  size_t count = 0;
  for (const Head& head : heads) count += static_cast<size_t>(head.count_totals());
  return count;
}

size_t count_totals(const Graph& graph, std::span<const Head> heads) {
  return count_totals(heads) + (graph.has_penalties() ? 1 : 0);
}

}  // namespace dtrain
