// Output to the user: results on standard output, everything else on standard error.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace dtrain {

/// Writes text to standard output and flushes it. Escapes control characters, which data and names may
/// contain (base/utf8.h). Throws Error if the text cannot be written. Returns false if the reader has closed
/// the pipe (as `head` does); endless commands should then stop.
bool print_text(std::string_view text);
/// Like print_text(), but escapes control characters only if standard output is a terminal, because other
/// programs need the text unchanged.
bool print_data(std::string_view text);
/// Like print_text(), but for raw bytes (data or terminal control sequences), which are not escaped.
bool print_bytes(std::string_view bytes);
void print_json(const Json& document);

/// Messages may come from any thread. Their control characters are escaped. If stderr_is_lively(), a message
/// erases the current line.
void print_note(std::string_view message);
void print_warning(std::string_view message);
/// Writes complete warning lines, which already contain their location and "warning:".
void print_warnings(const std::vector<std::string>& lines);
/// Prints the error that ends the process. Only the first call prints its message. Puts "error: " before the
/// message, unless the message already begins with "error: " or contains ": error: " after a location.
void print_error(std::string_view message);

/// Discards everything that is printed from now on. Warnings are passed to `on_warning` instead. Processes
/// other than process 0 call this function, because only process 0 prints.
void mute_console(std::function<void(std::string_view warning)> on_warning);
bool console_is_muted();
/// Remembers warnings from now on, for was_printed().
void remember_warnings();
/// Returns whether this warning was printed since remember_warnings().
bool was_printed(std::string_view warning);

/// Returns true if standard error is a terminal that supports colors and a progress bar. NO_COLOR disables
/// both.
bool stderr_is_lively();
bool stderr_is_terminal();
/// Returns the number of columns of standard error's terminal.
size_t terminal_width();

}  // namespace dtrain
