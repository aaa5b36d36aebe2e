// What metrics of classes follow from: how often each class was predicted, and rightly so.
#pragma once

#include <span>

#include "nn/metrics/counted.h"

namespace dtrain {

/// Over classes: micro counts all of them together; macro is the mean over those that were predicted or were
/// a target, weighted by their rows in `weighted`; none is one number a class.
enum class Average { none, micro, macro, weighted };
template <>
inline const EnumNames<Average> names_of<Average> = {{Average::none, "none"},
                                                     {Average::micro, "micro"},
                                                     {Average::macro, "macro"},
                                                     {Average::weighted, "weighted"}};

/// Of one class, or of all.
struct ClassCounts {
  double true_positives = 0, predicted = 0, actual = 0;  // rows

  double precision() const { return ratio(true_positives, predicted); }
  double recall() const { return ratio(true_positives, actual); }
  double f1() const { return ratio(2 * true_positives, predicted + actual); }
  double iou() const { return ratio(true_positives, predicted + actual - true_positives); }
};
using ScoreOfCounts = double (ClassCounts::*)() const;

/// Of class c, from the sums of CountSpec::Kind::classes.
ClassCounts counts_of(std::span<const double> sums, size_t c);
/// The score's average over all classes of such sums, or an array of one number a class.
Json average_of(std::span<const double> sums, ScoreOfCounts score, Average average);

}  // namespace dtrain
