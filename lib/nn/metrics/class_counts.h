// Counts of predictions per class. Classification metrics such as precision are computed from these counts.
#pragma once

#include <span>

#include "nn/metrics/counted.h"

namespace dtrain {

/// How a score is averaged over classes. micro: the score of the total counts. macro: the mean over all
/// classes that were predicted or that occur in the targets. weighted: the mean weighted by the number of
/// target rows of each class. none: no average, but one number per class.
enum class Average { none, micro, macro, weighted };
template <>
inline const EnumNames<Average> names_of<Average> = {{Average::none, "none"},
                                                     {Average::micro, "micro"},
                                                     {Average::macro, "macro"},
                                                     {Average::weighted, "weighted"}};

/// The counts of one class, or the sums of the counts of all classes.
struct ClassCounts {
  double true_positives = 0, predicted = 0, actual = 0;  // numbers of rows

  double precision() const { return ratio(true_positives, predicted); }
  double recall() const { return ratio(true_positives, actual); }
  double f1() const { return ratio(2 * true_positives, predicted + actual); }
  double iou() const { return ratio(true_positives, predicted + actual - true_positives); }
};
using ScoreOfCounts = double (ClassCounts::*)() const;

/// Returns the counts of class c. `sums` are the sums of a metric with CountSpec::Kind::classes.
ClassCounts counts_of(std::span<const double> sums, size_t c);
/// Returns the average of a score over all classes. With Average::none, returns an array with one number per
/// class. `sums` are the sums of a metric with CountSpec::Kind::classes.
Json average_of(std::span<const double> sums, ScoreOfCounts score, Average average);

}  // namespace dtrain
