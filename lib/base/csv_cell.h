// Cells of CSV files.
#pragma once

#include <string>

namespace dtrain {

/// The text as a cell: in quotes where it has a comma, a quote or the end of a line.
std::string csv_cell(const std::string& text);

}  // namespace dtrain
