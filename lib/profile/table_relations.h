// Finds columns of a table that determine each other, for `dtrain new`.
#pragma once

#include "profile/column_profile.h"

namespace dtrain {

/// The dependence of two columns on each other, ignoring missing values.
struct ColumnRelation {
  bool determines = false;     // equal values in the first column imply equal values in the second
  bool is_determined = false;  // equal values in the second column imply equal values in the first
  /// Each column determines the other, or is a linear function of it, so that both mean the same.
  bool is_same = false;
};

/// Compares the samples of both columns. Does not report relations that may be due to chance in few rows.
ColumnRelation relate(const ColumnProfile& one, const ColumnProfile& other);

}  // namespace dtrain
