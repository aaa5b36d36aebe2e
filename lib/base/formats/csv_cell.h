// Cells of CSV files.
#pragma once

#include <string>

namespace dtrain {

/// Returns the text as a CSV cell (RFC 4180): in quotes, with its own quotes doubled, if it contains a comma,
/// a quote or a line break; else unchanged.
std::string csv_cell(const std::string& text);

}  // namespace dtrain
