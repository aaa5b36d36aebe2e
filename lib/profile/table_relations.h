// Columns of a table that tell each other's values, for `dtrain new`.
#pragma once

#include "profile/column_profile.h"

namespace dtrain {

/// How two columns depend on each other. Missing values are left out of account.
struct ColumnRelation {
  bool determines = false;     // rows that have the same value in the first have the same in the second
  bool is_determined = false;  // and the other way round
  /// Both at once, or each is a multiple of the other plus a constant: two names for the same thing.
  bool is_same = false;
};

/// Judged by the samples of both columns. What chance alone may do to so few rows is no relation.
ColumnRelation relate(const ColumnProfile& one, const ColumnProfile& other);

}  // namespace dtrain
