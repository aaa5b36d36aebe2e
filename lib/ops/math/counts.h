// The contributions of one row to the sums of a CountSpec. CPU and GPU use the same functions. The threads of
// a group (ops/math/row_group.h) share the row, and each thread adds a part of the contributions.
#pragma once

#include <cstdint>
#include <limits>

#include "base/host_device.h"
#include "ops/math/losses.h"
#include "ops/math/row_group.h"
#include "ops/specs.h"

namespace dtrain::math {

/// Returns the index of the first greatest element of a row. NaN never counts as greater than another
/// element. If the row begins with NaN, returns 0.
template <class Group, class Score>
DTRAIN_HOST_DEVICE inline int64_t argmax(const Group& group, const Score& score, int64_t columns) {
  float best = score(0);
  int32_t at = 0;
  for (int64_t c = group.rank(); c < columns; c += group.size()) {
    const float value = score(c);
    at = value > best ? static_cast<int32_t>(c) : at;
    best = value > best ? value : best;
  }
  const float most = group.reduce(best, Max{});
  const int32_t first = group.reduce(best == most ? at : std::numeric_limits<int32_t>::max(), Min{});
  return most == most ? first : 0;
}

/// Returns the bucket of a score (CountSpec::buckets). NaN belongs to the first bucket.
DTRAIN_HOST_DEVICE inline int64_t bucket_of(const CountSpec& spec, float score) {
  constexpr uint32_t kMantissa = 23, kOne = 127u << kMantissa;
  constexpr uint32_t kLeast = kOne - (CountSpec::kOctaves << kMantissa);
  constexpr int64_t kSpan = int64_t{2 * CountSpec::kOctaves} << kMantissa;
  if (score != score) return 0;
  const uint32_t size = bits_of(score) & 0x7fffffffu;
  int64_t place = size < kLeast ? 0 : static_cast<int64_t>(size - kLeast);
  place = place < kSpan ? place : kSpan - 1;
  const int64_t below = spec.buckets / 2;
  if (score < 0.0f) return below - 1 - place * below / kSpan;
  return below + place * (spec.buckets - below) / kSpan;
}

/// Maps a probability to its logit. Greater probabilities have greater logits, and the logits of
/// probabilities near 0 and 1 are far apart. Logits of probabilities in (0, 1) are between -88 and 16.7.
/// Scores that are at most 0 or at least 1 are mapped to numbers outside of this range.
DTRAIN_HOST_DEVICE inline float order_of_probability(float p) {
  if (p >= 1.0f) return 17.0f * p;
  if (p <= 0.0f) return 128.0f * (p - 1.0f);
  return log(p) - log(1.0f - p);
}

/// The target of a row. If the targets are sparse, `dense` is null and `number` is the class (negative if the
/// class does not exist). Otherwise, `dense` points to the row's elements.
struct RowTarget {
  const float* dense;
  int64_t number;

  DTRAIN_HOST_DEVICE RowTarget(const CountSpec& spec, const void* target, int64_t row, int64_t columns)
      : dense(static_cast<const float*>(target) + row * columns), number(-1) {
    if (!spec.sparse) return;
    dense = nullptr;
    number = static_cast<const int32_t*>(target)[row];
    if (number >= columns) number = -1;
  }
  DTRAIN_HOST_DEVICE float operator()(int64_t c) const {
    return dense ? dense[c] : (c == number ? 1.0f : 0.0f);
  }
  DTRAIN_HOST_DEVICE bool is(int64_t c) const { return (*this)(c) > 0.5f; }
};

/// The softmax of a row of logits. operator() returns one column.
template <class Score>
struct RowSoftmax {
  const Score& score;
  float most, total = 0.0f;

  template <class Group>
  DTRAIN_HOST_DEVICE RowSoftmax(const Group& group, const Score& of_row, int64_t columns)
      : score(of_row), most(of_row(argmax(group, of_row, columns))) {
    for (int64_t c = group.rank(); c < columns; c += group.size()) total += exp(score(c) - most);
    total = group.reduce(total, Add{});
  }
  DTRAIN_HOST_DEVICE float operator()(int64_t c) const { return exp(score(c) - most) / total; }
};

/// The log-odds log(p / (1 - p)) of each softmax probability p of a row. They are accurate even if p rounds
/// to 0 or 1. The row must have at least two columns.
template <class Score>
struct SoftmaxLogits {
  const Score& score;
  int64_t best;
  float most, total;  // the greatest score, and the sum of exp(score - most)
  float others;       // the logarithm of the sum of exp(score) over all columns except the best one

  template <class Group>
  DTRAIN_HOST_DEVICE SoftmaxLogits(const Group& group, const Score& of_row, int64_t columns)
      : score(of_row), best(argmax(group, of_row, columns)), most(of_row(best)) {
    float second = score(best == 0 ? 1 : 0);
    for (int64_t c = group.rank(); c < columns; c += group.size())
      second = c != best && score(c) > second ? score(c) : second;
    second = group.reduce(second, Max{});
    total = group.rank() == 0 ? 1.0f : 0.0f;  // the best column contributes exp(0) = 1
    float sum = 0.0f;
    for (int64_t c = group.rank(); c < columns; c += group.size()) {
      if (c == best) continue;
      total += exp(score(c) - most);
      sum += exp(score(c) - second);
    }
    total = group.reduce(total, Add{});
    others = second + log(group.reduce(sum, Add{}));
  }
  DTRAIN_HOST_DEVICE float operator()(int64_t c) const {
    return c == best ? most - others : score(c) - most - log(total - exp(score(c) - most));
  }
};

/// Calls count(score) with the scores that must be compared with a threshold: the softmax of the row if the
/// scores are softmax logits, and the scores themselves otherwise.
template <class Group, class Score, class Count>
DTRAIN_HOST_DEVICE inline void after_softmax(const CountSpec& spec, const Group& group, const Score& score,
                                             int64_t columns, const Count& count) {
  if (spec.scores == CountSpec::Scores::softmax_logits) {
    count(RowSoftmax<Score>(group, score, columns));
  } else {
    count(score);
  }
}

/// Returns the class of a row's target. The result is negative if the class does not exist.
template <class Group>
DTRAIN_HOST_DEVICE inline int64_t class_of(const Group& group, const RowTarget& target, int64_t columns) {
  return target.dense ? argmax(group, target, columns) : target.number;
}

template <class Group, class Score, class AddTo>
DTRAIN_HOST_DEVICE inline void count_classes(const CountSpec& spec, const Group& group, const Score& score,
                                             const RowTarget& target, int64_t columns, const AddTo& add) {
  if (spec.by_threshold)
    return after_softmax(spec, group, score, columns, [&](const auto& compared) {
      for (int64_t c = group.rank(); c < columns; c += group.size()) {
        const bool predicted = compared(c) > spec.threshold, is = target.is(c);
        if (predicted && is) add(c, 1.0);
        if (predicted) add(columns + c, 1.0);
        if (is) add(2 * columns + c, 1.0);
      }
    });
  const int64_t predicted = argmax(group, score, columns), is = class_of(group, target, columns);
  if (is < 0 || group.rank() != 0) return;  // a class that does not exist is an error, which the loss reports
  if (predicted == is) add(is, 1.0);
  add(columns + predicted, 1.0);
  add(2 * columns + is, 1.0);
}

template <class Group, class Score, class AddTo>
DTRAIN_HOST_DEVICE inline void count_answers(const CountSpec& spec, const Group& group, const Score& score,
                                             const RowTarget& target, int64_t columns, const AddTo& add) {
  after_softmax(spec, group, score, columns, [&](const auto& compared) {
    int64_t hits = 0;
    for (int64_t c = group.rank(); c < columns; c += group.size())
      hits += (compared(c) > spec.threshold ? 1.0f : 0.0f) == target(c) ? 1 : 0;
    hits = group.reduce(hits, Add{});
    if (group.rank() == 0) add(0, static_cast<double>(hits) / static_cast<double>(columns));
  });
}

template <class Group, class Score, class AddTo>
DTRAIN_HOST_DEVICE inline void count_confusion(const CountSpec& spec, const Group& group, const Score& score,
                                               const RowTarget& target, int64_t columns, const AddTo& add) {
  int64_t is = 0, predicted = 0, classes = columns;
  if (columns == 1) {
    classes = 2;
    is = target.is(0) ? 1 : 0;
    predicted = score(0) > spec.threshold ? 1 : 0;
  } else {
    is = class_of(group, target, columns);
    predicted = argmax(group, score, columns);
  }
  if (is >= 0 && group.rank() == 0) add(is * classes + predicted, 1.0);
}

template <class Group, class Score, class AddTo>
DTRAIN_HOST_DEVICE inline void count_buckets(const CountSpec& spec, const Group& group, const Score& score,
                                             const RowTarget& target, int64_t columns, const AddTo& add) {
  const auto count = [&](const auto& order) {
    for (int64_t c = group.rank(); c < columns; c += group.size()) {
      const int64_t curve = spec.by_column ? c : 0, side = target.is(c) ? 1 : 0;
      add((2 * curve + side) * spec.buckets + bucket_of(spec, order(c)), 1.0);
    }
  };
  if (spec.scores == CountSpec::Scores::sigmoid_logits) return count(score);
  if (spec.scores == CountSpec::Scores::softmax_logits)
    return count(SoftmaxLogits<Score>(group, score, columns));
  count([&](int64_t c) { return order_of_probability(score(c)); });
}

template <class Group, class Score, class AddTo>
DTRAIN_HOST_DEVICE inline void count_regression(const Group& group, const Score& score,
                                                const RowTarget& target, int64_t columns, const AddTo& add) {
  for (int64_t c = group.rank(); c < columns; c += group.size()) {
    const double t = static_cast<double>(target(c)), error = t - static_cast<double>(score(c));
    add(c, t);
    add(columns + c, t * t);
    add(2 * columns + c, error * error);
  }
  if (group.rank() == 0) add(3 * columns, 1.0);
}

/// Adds the contributions of a row to the sums. score(c) returns column c of the row, and add(place, amount)
/// adds to one of the sums. If several threads add to the same sum, they add the same amount.
template <class Group, class Score, class AddTo>
DTRAIN_HOST_DEVICE inline void count_row(const CountSpec& spec, const Group& group, const Score& score,
                                         const void* target, int64_t row, int64_t columns, const AddTo& add) {
  const RowTarget row_target(spec, target, row, columns);
  switch (spec.kind) {
    case CountSpec::Kind::classes:
      return count_classes(spec, group, score, row_target, columns, add);
    case CountSpec::Kind::confusion:
      return count_confusion(spec, group, score, row_target, columns, add);
    case CountSpec::Kind::buckets:
      return count_buckets(spec, group, score, row_target, columns, add);
    case CountSpec::Kind::regression:
      return count_regression(group, score, row_target, columns, add);
    case CountSpec::Kind::answers:
      return count_answers(spec, group, score, row_target, columns, add);
  }
}

}  // namespace dtrain::math
