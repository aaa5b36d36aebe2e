// What reaches the person: results on standard output, everything else on standard error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace dtrain {

/// Writes text to standard output and flushes it. Escapes control characters, which data and names may
/// contain (base/utf8.h). Throws Error where the text cannot be written. Returns false where the reader has
/// closed the pipe (as `head` does): a command that prints without end then stops.
bool print_text(std::string_view text);
/// The same for bytes that are written as they are: data, and a terminal's control sequences.
bool print_bytes(std::string_view bytes);
void print_json(const Json& document);

/// Messages may come from any thread. Control characters in them are escaped. On a lively terminal a message
/// erases the line that the cursor is on.
void print_note(std::string_view message);
void print_warning(std::string_view message);
/// Writes lines that say themselves to which place they belong, and that they are warnings.
void print_warnings(const std::vector<std::string>& lines);
/// The error that ends the process: only the first one is printed. Puts "error:" before the message, unless
/// the message says that itself, behind a place in a file.
void print_error(std::string_view message);

/// Whether standard error is a terminal that may be given colours and a moving bar: NO_COLOR forbids both.
bool stderr_is_lively();
bool stderr_is_terminal();
/// Columns of the terminal behind standard error.
size_t terminal_width();

}  // namespace dtrain
