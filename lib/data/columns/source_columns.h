// The result of opening a reader: the columns of its files, and the facts that the reader found in the files.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/columns/column.h"
#include "data/data_facts.h"

namespace dtrain {

/// The columns that a reader opened. All columns have the same number of rows.
struct SourceColumns {
  SourceColumns() = default;
  SourceColumns(Columns all) : columns(std::move(all)) {}

  Columns columns;  // the requested inputs, followed by the requested targets
  /// One float32 loss weight per row; null if the source has none.
  std::shared_ptr<const Column> weights;
  /// Names of the rows. Each name is uint8 text of a fixed length, padded with zeros. The name of the column
  /// is the title of the names, such as "id" or "path". Null if rows are identified only by their numbers.
  std::shared_ptr<const Column> names;
  /// The facts that were passed to the reader, and the facts that it found in the files.
  SourceFacts facts;
  /// Warnings for the user, one sentence each.
  std::vector<std::string> warnings;
};

/// Returns a column of texts in the format of SourceColumns::names. The name of the column is `title`.
std::shared_ptr<const Column> text_column(const std::string& title, const std::vector<std::string>& texts);
/// Returns the text in row `row` of a column of texts, such as SourceColumns::names.
std::string text_of(const Column& column, int64_t row);

}  // namespace dtrain
