// Losses, metrics and optimizer updates. Part of kernels/all.h.
#pragma once

#include "ops/cpu/kernels/rows.h"
#include "ops/cpu/kernels/table.h"
#include "ops/math/counts.h"
#include "ops/math/factored_means.h"
#include "ops/math/losses.h"
#include "ops/math/optimizers.h"
#include "ops/math/pairwise.h"
#include "ops/math/row_losses.h"

namespace dtrain::cpu {
namespace {

/// Returns a row's loss for class k. The gradient is (softmax - one-hot) * scale.
double sparse_logits_row(const float* x, int32_t k, float scale, float* diff, float* spare, int64_t n) {
  const float most = row_max(x, n);
  const float chosen = x[k];
  float total = 0.0f;
  if (diff) {
    total = shifted_exponentials(x, most, diff, n);
    const float factor = scale / total;
    for (int64_t c = 0; c < n; ++c) diff[c] *= factor;
    diff[k] -= scale;
  } else {
    for (int64_t first = 0; first < n; first += kChunk) {
      total += shifted_exponentials(x + first, most, spare, first + kChunk < n ? kChunk : n - first);
    }
  }
  return static_cast<double>(math::log(total)) + static_cast<double>(most - chosen);
}

/// A row's target distribution without smoothing.
struct PlainTarget {
  const float* t;
  DTRAIN_HOST_DEVICE float operator()(int64_t c) const { return t[c]; }
};
/// A target class with label smoothing: a part of the probability is spread over all classes.
struct SpreadClass {
  int64_t k;
  float kept, spread;
  DTRAIN_HOST_DEVICE float operator()(int64_t c) const { return c == k ? kept + spread : spread; }
};

/// Returns the part of t(c) that is summed over all columns of a row. For a SpreadClass, this is only
/// `spread`. add_rest() adds `kept` after the sum, because `kept` is much larger than `spread`: thousands of
/// small numbers that are added to a large number would lose precision.
template <class Target>
DTRAIN_HOST_DEVICE inline float summed(const Target& t, int64_t c) {
  return t(c);
}
DTRAIN_HOST_DEVICE inline float summed(const SpreadClass& t, int64_t) {
  return t.spread;
}
template <class Target>
void add_rest(const Target&, const float*, float, float, double&, float&) {}
void add_rest(const SpreadClass& t, const float* x, float most, float offset, double& loss, float& weight) {
  loss += static_cast<double>(t.kept) * static_cast<double>(offset - (x[t.k] - most));
  weight += t.kept;
}

/// Returns a row's loss for target distribution t: the sum of t (log sum exp x - x).
template <class Target>
double dense_logits_row(const float* x, const Target& t, float scale, float* diff, float* spare, int64_t n) {
  const float most = row_max(x, n);
  float total = 0.0f;
  for (int64_t first = 0; first < n; first += kChunk) {
    total += shifted_exponentials(x + first, most, spare, first + kChunk < n ? kChunk : n - first);
  }
  const float offset = math::log(total);
  float loss = 0.0f, weight = 0.0f;
#pragma omp simd reduction(+ : loss, weight)
  for (int64_t c = 0; c < n; ++c) {
    loss += summed(t, c) * (offset - (x[c] - most));
    weight += summed(t, c);
  }
  double whole_loss = static_cast<double>(loss);
  add_rest(t, x, most, offset, whole_loss, weight);
  if (diff) {
    const float factor = scale * weight / total;
#pragma omp simd
    for (int64_t c = 0; c < n; ++c) diff[c] = factor * math::exp(x[c] - most) - scale * t(c);
  }
  return whole_loss;
}

double sparse_probability_row(const float* p, int32_t k, float scale, float* diff, int64_t n) {
  constexpr math::NegativeLogLikelihood kLoss;
  const float chosen = p[k];
  if (diff) {
    for (int64_t c = 0; c < n; ++c) diff[c] = 0.0f;
    diff[k] = scale * kLoss.gradient(chosen, 1.0f);
  }
  return static_cast<double>(kLoss.value(chosen, 1.0f));
}

template <class Target>
double dense_probability_row(const float* p, const Target& t, float scale, float* diff, int64_t n) {
  constexpr math::NegativeLogLikelihood kLoss;
  float loss = 0.0f;
#pragma omp simd reduction(+ : loss)
  for (int64_t c = 0; c < n; ++c) loss += kLoss.value(p[c], t(c));
  if (diff) {
#pragma omp simd
    for (int64_t c = 0; c < n; ++c) diff[c] = scale * kLoss.gradient(p[c], t(c));
  }
  return static_cast<double>(loss);
}

/// Computes one row of a cross-entropy whose target has a probability for each class. Depending on the spec,
/// the predictions are logits or probabilities.
template <class Target>
double dense_row(const CrossEntropySpec& spec, const float* p, const Target& t, float scale, float* diff,
                 float* spare, int64_t n) {
  return spec.from_logits ? dense_logits_row(p, t, scale, diff, spare, n)
                          : dense_probability_row(p, t, scale, diff, n);
}

double cross_entropy(const CrossEntropySpec& spec, const float* prediction, const void* target,
                     const RowWeights& weights, float scale_of_all, float* diff_prediction, int64_t columns,
                     int64_t begin, int64_t end) {
  alignas(64) float spare[kChunk];
  const float kept = 1.0f - spec.label_smoothing, spread = spec.label_smoothing / static_cast<float>(columns);
  double total = 0.0;
  for (int64_t r = begin; r < end; ++r) {
    const float* p = prediction + r * columns;
    float* diff = diff_prediction ? diff_prediction + r * columns : nullptr;
    const float weight = weights.of(r), scale = weight * scale_of_all;
    double loss = 0.0;
    if (!spec.sparse) {
      const float* t = static_cast<const float*>(target) + r * columns;
      loss = spec.label_smoothing == 0.0f
                 ? dense_row(spec, p, PlainTarget{t}, scale, diff, spare, columns)
                 : dense_row(spec, p, math::SmoothedTarget{t, kept, spread}, scale, diff, spare, columns);
    } else if (const int32_t k = static_cast<const int32_t*>(target)[r]; k < 0 || k >= columns) {
      const float nan = __builtin_nanf("");
      if (diff) fill(diff, nan, 0, columns);
      loss = static_cast<double>(nan);
    } else if (spec.label_smoothing != 0.0f) {
      loss = dense_row(spec, p, SpreadClass{k, kept, spread}, scale, diff, spare, columns);
    } else {
      loss = spec.from_logits ? sparse_logits_row(p, k, scale, diff, spare, columns)
                              : sparse_probability_row(p, k, scale, diff, columns);
    }
    total += static_cast<double>(weight) * loss;
  }
  return total;
}

double row_loss(const RowLossSpec& spec, const float* prediction, const float* target,
                const RowWeights& weights, float scale, float* diff_prediction, int64_t columns,
                int64_t begin, int64_t end) {
  double total = 0.0;
  for (int64_t r = begin; r < end; ++r) {
    const float* p = prediction + r * columns;
    float* diff = diff_prediction + r * columns;
    const auto score = [&](int64_t c) { return p[c]; };
    const auto write = [&](int64_t c, float value) { diff[c] = value; };
    const float weight = weights.of(r);
    total += static_cast<double>(weight) * math::row_loss(spec, math::OneThread{}, score,
                                                          target + r * columns, weight * scale, columns,
                                                          diff_prediction != nullptr, write);
  }
  return total;
}

template <class Value>
double sum_of_values(Value&& of, const float* prediction, const float* target, int64_t begin, int64_t end) {
  double total = 0.0;
#pragma omp simd reduction(+ : total)
  for (int64_t i = begin; i < end; ++i) total += static_cast<double>(of.value(prediction[i], target[i]));
  return total;
}

double elementwise_loss(const ElementwiseLossSpec& spec, const float* prediction, const float* target,
                        float scale, float* diff_prediction, int64_t begin, int64_t end) {
  double total = 0.0;
  math::with_loss(spec, [&](auto loss) {
    total = sum_of_values(loss, prediction, target, begin, end);
    if (!diff_prediction) return;
#pragma omp simd
    for (int64_t i = begin; i < end; ++i)
      diff_prediction[i] = scale * loss.gradient(prediction[i], target[i]);
  });
  return total;
}

/// Returns 1 if class k is among the best `top` classes (see MetricSpec::k), else 0. Returns 0 if the class
/// does not exist or its score is NaN.
double top_k_row(const float* p, int64_t k, int top, int64_t n) {
  if (k < 0 || k >= n) return 0.0;
  const float score = p[k];
  int64_t better = 0;
#pragma omp simd reduction(+ : better)
  for (int64_t c = 0; c < n; ++c) better += p[c] > score || (p[c] == score && c < k) ? 1 : 0;
  return score == score && better < top ? 1.0 : 0.0;
}

/// Returns the sum of the metric over the rows [begin, end). For an elementwise metric, this is the sum over
/// all elements of these rows; otherwise, it is the sum over the rows.
double metric(const MetricSpec& spec, const float* prediction, const void* target, const RowWeights& weights,
              int64_t columns, int64_t begin, int64_t end) {
  using Kind = MetricSpec::Kind;
  const float* dense = static_cast<const float*>(target);
  const auto of_elements = [&](int64_t first, int64_t last) {
    if (spec.kind == Kind::mean_absolute_error)
      return sum_of_values(math::AbsoluteError{}, prediction, dense, first, last);
    return sum_of_values(math::BinaryAccuracy{spec.threshold}, prediction, dense, first, last);
  };
  const bool elements = spec.kind == Kind::mean_absolute_error || spec.kind == Kind::binary_accuracy;
  if (elements && !weights.values) return of_elements(begin * columns, end * columns);
  double total = 0.0;
  for (int64_t r = begin; r < end; ++r) {
    const double weight = static_cast<double>(weights.of(r));
    if (elements) {
      total += weight * of_elements(r * columns, (r + 1) * columns);
      continue;
    }
    const int64_t k =
        spec.kind == Kind::sparse_top_k
            ? static_cast<const int32_t*>(target)[r]
            : math::argmax(
                  math::OneThread{}, [row = dense + r * columns](int64_t c) { return row[c]; }, columns);
    total += weight * top_k_row(prediction + r * columns, k, spec.k, columns);
  }
  return total;
}

double sum_of(const float* src, int64_t begin, int64_t end) {
  double total = 0.0;
#pragma omp simd reduction(+ : total)
  for (int64_t i = begin; i < end; ++i) total += static_cast<double>(src[i]);
  return total;
}

/// Returns the sum of the squares of n floats, summed pairwise (ops/math/pairwise.h).
double sum_of_squares(const float* src, int64_t n) {
  constexpr int64_t kGrain = math::kSquaresGrain, kRun = 256;  // grains per run; their sums stay in the cache
  math::PairwiseSum sum;
  double terms[kRun];
  const int64_t whole = n / kGrain, rest = n % kGrain, grains = whole + (rest > 0 ? 1 : 0);
  for (int64_t first = 0; first < grains; first += kRun) {
    const int64_t count = grains - first < kRun ? grains - first : kRun;
    const int64_t full = whole - first < count ? whole - first : count;
    for (int64_t i = 0; i < full; ++i) terms[i] = math::grain_of_squares(src + (first + i) * kGrain);
    if (full < count) {
      float last[kGrain] = {};
      for (int64_t i = 0; i < rest; ++i) last[i] = src[whole * kGrain + i];
      terms[full] = math::grain_of_squares(last);
    }
    sum.add(math::pairwise_sum(terms, count));
  }
  return sum.total();
}

template <bool kClips, int kSlots, class Step>
void update_by(const Step step, const UpdateNumbers& numbers, float* weights, const float* gradient,
               float* const* slots, int64_t begin, int64_t end) {
  float* const slot0 = kSlots > 0 ? slots[0] : nullptr;
  float* const slot1 = kSlots > 1 ? slots[1] : nullptr;
  float* const slot2 = kSlots > 2 ? slots[2] : nullptr;
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    float s0 = 0.0f, s1 = 0.0f, s2 = 0.0f;
    if constexpr (kSlots > 0) s0 = slot0[i];
    if constexpr (kSlots > 1) s1 = slot1[i];
    if constexpr (kSlots > 2) s2 = slot2[i];
    float w = weights[i];
    w -= numbers.decay * w;
    step(w, math::scaled<kClips>(gradient[i], numbers), s0, s1, s2);
    weights[i] = w;
    if constexpr (kSlots > 0) slot0[i] = s0;
    if constexpr (kSlots > 1) slot1[i] = s1;
    if constexpr (kSlots > 2) slot2[i] = s2;
  }
}

void update(const OptimizerRule& any_rule, const StepState& state, const GroupRule& group, float* weights,
            const float* gradient, float* const* slots, int64_t begin, int64_t end) {
  math::with_rule(any_rule, [&]<class Rule>(const Rule& rule) {
    const UpdateNumbers numbers = math::update_numbers<Rule>(state, group);
    const auto step = rule.begin(state, group);
    if (numbers.clip_value < INFINITY)
      update_by<true, Rule::kTraits.slots>(step, numbers, weights, gradient, slots, begin, end);
    else
      update_by<false, Rule::kTraits.slots>(step, numbers, weights, gradient, slots, begin, end);
  });
}

template <bool kClips>
double add_factored_row_by(const math::Adafactor::Step& step, const UpdateNumbers& numbers, float* weights,
                           float* gradient, double* sums, int64_t n) {
  constexpr int64_t kLanes = 16;
  double lanes[kLanes] = {};
  const auto add = [&](int64_t i, double& lane) {
    weights[i] -= numbers.decay * weights[i];
    gradient[i] = math::scaled<kClips>(gradient[i], numbers);
    const double square = step.square(gradient[i]);
    sums[i] += square;
    lane += square;
  };
  int64_t begin = 0;
  for (; begin + kLanes <= n; begin += kLanes) {
#pragma omp simd
    for (int64_t lane = 0; lane < kLanes; ++lane) add(begin + lane, lanes[lane]);
  }
  for (int64_t i = begin; i < n; ++i) add(i, lanes[i - begin]);
  return math::pairwise_sum(lanes, kLanes);
}

double add_factored_row(const math::Adafactor::Step& step, const UpdateNumbers& numbers, float* weights,
                        float* gradient, double* sums, int64_t n) {
  return numbers.clip_value < INFINITY
             ? add_factored_row_by<true>(step, numbers, weights, gradient, sums, n)
             : add_factored_row_by<false>(step, numbers, weights, gradient, sums, n);
}

void factored_direction(float factor, const float* column_means, float* gradient, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i)
    gradient[i] = math::factored_direction(gradient[i], factor, column_means[i]);
}

}  // namespace
}  // namespace dtrain::cpu
