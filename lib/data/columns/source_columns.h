// The result of opening a reader: the columns of its files and the facts found in them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/columns/column.h"
#include "data/data_facts.h"

namespace dtrain {

/// Holds the columns that a reader opened; all have the same number of rows.
struct SourceColumns {
  SourceColumns() = default;
  SourceColumns(Columns all) : columns(std::move(all)) {}

  Columns columns;  // columns of the request's inputs, then of its targets
  /// One float32 loss weight per row; null if the source has none.
  std::shared_ptr<const Column> weights;
  /// Names of the rows: uint8 text of a fixed length, padded with zeros. The column's name is their title
  /// ("id", "path"). Null if rows have only numbers.
  std::shared_ptr<const Column> names;
  /// The facts passed to the reader, completed by those found in the files.
  SourceFacts facts;
  /// Warnings for the user, one sentence each.
  std::vector<std::string> warnings;
};

/// Returns a column of texts in the form of SourceColumns::names, named `title`.
std::shared_ptr<const Column> text_column(const std::string& title, const std::vector<std::string>& texts);
/// Returns the text in row `row` of a column of texts, such as SourceColumns::names.
std::string text_of(const Column& column, int64_t row);

}  // namespace dtrain
