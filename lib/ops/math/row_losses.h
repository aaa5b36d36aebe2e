// Losses that are computed over a whole row, as in Keras, and read the row several times. The threads of a
// group (ops/math/row_group.h) share a row. Each thread returns a part of the row's loss; the loss is the sum
// of these parts. score(c) and target(c) return the elements of the row. If has_gradient is true, the thread
// that processes column c calls write(c, gradient * scale).
#pragma once

#include "base/host_device.h"
#include "ops/math/losses.h"
#include "ops/math/row_group.h"
#include "ops/specs.h"

namespace dtrain::math {

/// The target of a row with label smoothing: a part of the target is spread evenly over the classes of the
/// row.
struct SmoothedTarget {
  const float* target;  // targets of the row
  float kept, spread;
  DTRAIN_HOST_DEVICE float operator()(int64_t c) const { return kept * target[c] + spread; }
};

/// Computes the negative cosine of the angle between the prediction and the target. If the length of one of
/// these vectors is below 1e-7, 1e-7 is used instead.
template <class Group, class Score, class Target, class Write>
DTRAIN_HOST_DEVICE inline double cosine_similarity_row(const Group& group, const Score& score,
                                                       const Target& target, float scale, int64_t columns,
                                                       bool has_gradient, const Write& write) {
  float pp = 0.0f, tt = 0.0f, pt = 0.0f;
  for (int64_t c = group.rank(); c < columns; c += group.size()) {
    const float p = score(c), t = target(c);
    pp += p * p;
    tt += t * t;
    pt += p * t;
  }
  pp = group.reduce(pp, Add{});
  tt = group.reduce(tt, Add{});
  pt = group.reduce(pt, Add{});
  constexpr float kLeast = 1e-7f;
  const float length = ::sqrtf(pp), target_length = ::sqrtf(tt);
  const float p_inverse = 1.0f / (length < kLeast ? kLeast : length);
  const float t_inverse = 1.0f / (target_length < kLeast ? kLeast : target_length);
  const float cosine = pt * p_inverse * t_inverse;
  if (has_gradient) {
    // If the length is below the limit, the prediction has no direction, so its gradient is 0.
    const float factor = length < kLeast ? 0.0f : scale * p_inverse;
    for (int64_t c = group.rank(); c < columns; c += group.size())
      write(c, factor * (cosine * score(c) * p_inverse - target(c) * t_inverse));
  }
  return group.rank() == 0 ? -static_cast<double>(cosine) : 0.0;
}

/// Computes the sum over the classes of alpha (1 - q)^gamma times the cross-entropy of the class, where q is
/// the probability of the class. If the scores are logits, the probabilities are their softmax; otherwise,
/// they are the scores divided by the sum of the row.
template <class Group, class Score, class Target, class Write>
DTRAIN_HOST_DEVICE inline double focal_crossentropy_row(const RowLossSpec& spec, const Group& group,
                                                        const Score& score, const Target& target, float scale,
                                                        int64_t columns, bool has_gradient,
                                                        const Write& write) {
  float most = 0.0f;
  if (spec.from_logits) {
    most = score(0);
    for (int64_t c = group.rank(); c < columns; c += group.size()) most = score(c) > most ? score(c) : most;
    most = group.reduce(most, Max{});
  }
  const auto raised = [&](int64_t c) { return spec.from_logits ? exp(score(c) - most) : score(c); };
  float total = 0.0f;
  for (int64_t c = group.rank(); c < columns; c += group.size()) total += raised(c);
  total = group.reduce(total, Add{});
  // Returns the derivative with respect to q, or 0 if q was clipped.
  const auto slope = [&](float q, float t) {
    if (clip_probability(q) != q) return q * 0.0f;
    const float lost = spec.gamma * power(1.0f - q, spec.gamma - 1.0f) * log(q);
    return spec.alpha * t * (lost - power(1.0f - q, spec.gamma) / q);
  };
  double loss = 0.0;
  float mean_slope = 0.0f;
  for (int64_t c = group.rank(); c < columns; c += group.size()) {
    const float q = raised(c) / total, t = target(c), clipped = clip_probability(q);
    loss -= static_cast<double>(spec.alpha * t * power(1.0f - clipped, spec.gamma) * log(clipped));
    mean_slope += slope(q, t) * q;
  }
  mean_slope = group.reduce(mean_slope, Add{});
  if (has_gradient) {
    for (int64_t c = group.rank(); c < columns; c += group.size()) {
      const float q = raised(c) / total, factor = spec.from_logits ? q : 1.0f / total;
      write(c, scale * factor * (slope(q, target(c)) - mean_slope));
    }
  }
  return loss;
}

/// Computes the mean over the classes of 1 - overlap, times spec.factor. The overlap of prediction and target
/// is the Dice coefficient or the Tversky index. Sums are computed in double precision, because a row may be
/// a whole image.
template <class Group, class Score, class Target, class Write>
DTRAIN_HOST_DEVICE inline double overlap_row(const RowLossSpec& spec, const Group& group, const Score& score,
                                             const Target& target, float scale, int64_t columns,
                                             bool has_gradient, const Write& write) {
  // overlap = times * both / (of_both * both + of_target * targets + of_score * scores), where `both` is the
  // sum of the products of scores and targets, `targets` is the sum of the targets, and `scores` is the sum
  // of the scores.
  const bool is_dice = spec.kind == RowLossSpec::Kind::dice;
  const double alpha = static_cast<double>(spec.alpha), beta = static_cast<double>(spec.beta);
  const double times = is_dice ? 2.0 : 1.0, of_both = is_dice ? 0.0 : 1.0 - alpha - beta;
  const double of_target = is_dice ? 1.0 : alpha, of_score = is_dice ? 1.0 : beta;
  constexpr double kEpsilon = 1e-7;  // as in Keras
  const int64_t step = group.size() * spec.classes;
  double loss = 0.0;
  for (int64_t k = 0; k < spec.classes; ++k) {
    const int64_t first = k + group.rank() * spec.classes;
    double both = 0.0, targets = 0.0, scores = 0.0;
    for (int64_t c = first; c < columns; c += step) {
      const double p = static_cast<double>(score(c)), t = static_cast<double>(target(c));
      both += p * t;
      targets += t;
      scores += p;
    }
    both = group.reduce(both, Add{});
    targets = group.reduce(targets, Add{});
    scores = group.reduce(scores, Add{});
    const double divisor = of_both * both + of_target * targets + of_score * scores + kEpsilon;
    const double overlap = times * both / divisor;
    loss += 1.0 - overlap;
    if (!has_gradient) continue;
    const double of_class = static_cast<double>(scale) / static_cast<double>(spec.classes) / divisor;
    const auto slope = static_cast<float>(of_class * (overlap * of_both - times));
    const auto offset = static_cast<float>(of_class * overlap * of_score);
    for (int64_t c = first; c < columns; c += step) write(c, slope * target(c) + offset);
  }
  return group.rank() == 0 ? spec.factor * loss / static_cast<double>(spec.classes) : 0.0;
}

/// Returns this thread's part of the loss of one row.
template <class Group, class Score, class Write>
DTRAIN_HOST_DEVICE inline double row_loss(const RowLossSpec& spec, const Group& group, const Score& score,
                                          const float* target, float scale, int64_t columns,
                                          bool has_gradient, const Write& write) {
  const float spread = spec.label_smoothing / static_cast<float>(columns);
  const SmoothedTarget smoothed{target, 1.0f - spec.label_smoothing, spread};
  switch (spec.kind) {
    case RowLossSpec::Kind::cosine_similarity:
      return cosine_similarity_row(group, score, smoothed, scale, columns, has_gradient, write);
    case RowLossSpec::Kind::categorical_focal_crossentropy:
      return focal_crossentropy_row(spec, group, score, smoothed, scale, columns, has_gradient, write);
    default:
      return overlap_row(spec, group, score, smoothed, scale, columns, has_gradient, write);
  }
}

}  // namespace dtrain::math
