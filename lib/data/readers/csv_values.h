// What the text of one value says.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dtrain {

/// A finite number, or nothing.
std::optional<double> csv_number(std::string_view text);
/// One of the ways to say that there is no value: nothing at all, NA, null, ?, ...
bool is_csv_gap(std::string_view text);
/// Whether a text says so where names may stand: only what tables write for a missing value, as they write
/// it.
bool is_csv_missing_name(std::string_view text);
/// Neither a number (nan and inf are numbers here) nor a gap.
bool is_csv_name(std::string_view text);
/// Whether it looks like a day: 2026-11-22, 22.11.2026, 11/22/26, perhaps with a time behind it.
bool is_csv_date(std::string_view text);

}  // namespace dtrain
