// What reaches the person: results on standard output, everything else on standard error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace dtrain {

/// Text on standard output, at once. Throws Error where it cannot be written; a reader that went away (as
/// `head` does) is no failure.
void print_text(std::string_view text);
void print_json(const Json& document);

void print_note(std::string_view message);
void print_warning(std::string_view message);
/// Lines that say themselves where they belong, and that they are warnings.
void print_warnings(const std::vector<std::string>& lines);
/// Messages that say "error:" themselves, behind the place in a file, stay as they are.
void print_error(std::string_view message);

/// Whether standard error is a terminal that may be given colours and a moving bar: NO_COLOR forbids both.
bool stderr_is_lively();
bool stderr_is_terminal();
/// Columns of the terminal behind standard error.
size_t terminal_width();

}  // namespace dtrain
