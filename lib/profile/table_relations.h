// Finds columns of a table that determine each other, for `dtrain new`.
#pragma once

#include "profile/column_profile.h"

namespace dtrain {

/// The dependence between two columns. Rows with missing values are ignored.
struct ColumnRelation {
  bool determines = false;     // equal values in the first column imply equal values in the second
  bool is_determined = false;  // equal values in the second column imply equal values in the first
  /// Whether the columns have the same meaning: each determines the other, or one is a linear function of the
  /// other.
  bool is_same = false;
};

/// Compares the samples of two columns. If there are few rows, relations that may be due to chance are not
/// reported.
ColumnRelation relate(const ColumnProfile& one, const ColumnProfile& other);

}  // namespace dtrain
