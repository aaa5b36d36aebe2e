// What a reader opens: the arrays of its files, and what it learned of them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/columns/column.h"
#include "data/data_facts.h"

namespace dtrain {

/// All columns are of the same number of rows.
struct SourceColumns {
  SourceColumns() = default;
  SourceColumns(Columns all) : columns(std::move(all)) {}

  Columns columns;  // of the request's inputs, then its targets
  /// A float32 number a row that its loss is multiplied by; null where the source has none.
  std::shared_ptr<const Column> weights;
  /// What the rows are called: uint8 text of a fixed length with zeros behind it. The column's name says what
  /// that is ("id", "path"). Null where rows have no names but their numbers.
  std::shared_ptr<const Column> names;
  /// What was known, completed by what the files say.
  SourceFacts facts;
  /// What its user should know of it, a sentence each.
  std::vector<std::string> warnings;
};

/// A column of texts as SourceColumns::names has them. `title` says what they are.
std::shared_ptr<const Column> text_column(const std::string& title, const std::vector<std::string>& texts);
/// Row `row` of such a column.
std::string text_of(const Column& column, int64_t row);

}  // namespace dtrain
