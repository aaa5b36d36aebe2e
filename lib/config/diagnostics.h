// Collects all errors in a configuration, to report them together.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/node.h"

namespace dtrain {

class Diagnostics {
 public:
  struct Item {
    Mark mark;
    std::string message;
  };

  void error(const Mark& mark, std::string message);
  void error(const ConfigNode& node, std::string message) { error(node.mark(), std::move(message)); }
  /// Warns about something valid that is probably a mistake.
  void warning(const Mark& mark, std::string message);
  bool has_errors() const { return !items_.empty(); }
  /// Returns the number of errors so far.
  size_t count() const { return items_.size(); }
  const std::vector<Item>& items() const { return items_; }

  /// Throws a UserError with one line per error, "file:line:column: error: message", sorted by location,
  /// without repeated messages at the same location. Shows at most 100 lines and a count of the rest.
  void throw_if_errors() const;
  /// Returns the warnings in the format and order of throw_if_errors().
  std::vector<std::string> warnings() const;

 private:
  std::vector<Item> items_, warnings_;
};

/// Creates an error that is found after parsing, with its location: "configs/a.yaml:14:7: error: message".
UserError error_at(const Mark& mark, const std::string& message);
/// Returns `message`, preceded by its location if known.
std::string located(const Mark& place, const std::string& message);

/// Returns true if `word` looks like a misspelling of one of `candidates`.
bool is_near(std::string_view word, std::span<const std::string> candidates);
/// Returns advice about an unknown name, to append to a message. If the word is a candidate's name in another
/// framework (aliases.h) or resembles a candidate, the advice is "; did you mean 'kernel_size'?". If
/// aliases.h contains a sentence about the word, the advice is this sentence, such as "; it is ...".
/// Otherwise returns "".
std::string suggestion(std::string_view word, std::span<const std::string> candidates);
/// Like suggestion(), but returns "; expected one of a, b, c" if the suggestion is empty.
std::string suggestion_or_list(std::string_view word, std::span<const std::string> candidates);
/// Like suggestion(), but for the name of a file, without its folder.
std::string file_suggestion(std::string_view name, std::span<const std::string> candidates);

}  // namespace dtrain
