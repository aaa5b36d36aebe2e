// Counts of predictions per class, from which classification metrics are computed.
#pragma once

#include <span>

#include "nn/metrics/counted.h"

namespace dtrain {

/// Averages over classes. micro: from the total counts; macro: the mean over the classes that were predicted
/// or occur as targets; weighted: the mean weighted by the classes' target rows; none: one number per class.
enum class Average { none, micro, macro, weighted };
template <>
inline const EnumNames<Average> names_of<Average> = {{Average::none, "none"},
                                                     {Average::micro, "micro"},
                                                     {Average::macro, "macro"},
                                                     {Average::weighted, "weighted"}};

/// The counts of one class, or the sums over all classes.
struct ClassCounts {
  double true_positives = 0, predicted = 0, actual = 0;  // numbers of rows

  double precision() const { return ratio(true_positives, predicted); }
  double recall() const { return ratio(true_positives, actual); }
  double f1() const { return ratio(2 * true_positives, predicted + actual); }
  double iou() const { return ratio(true_positives, predicted + actual - true_positives); }
};
using ScoreOfCounts = double (ClassCounts::*)() const;

/// Returns the counts of class c from the sums of CountSpec::Kind::classes.
ClassCounts counts_of(std::span<const double> sums, size_t c);
/// Returns the average of a score over all classes, or an array with one number per class. `sums`: the sums
/// of CountSpec::Kind::classes.
Json average_of(std::span<const double> sums, ScoreOfCounts score, Average average);

}  // namespace dtrain
