// Cells of CSV files.
#pragma once

#include <string>

namespace dtrain {

/// Returns the text as a CSV cell: quoted if it contains a comma, a quote or a line break.
std::string csv_cell(const std::string& text);

}  // namespace dtrain
