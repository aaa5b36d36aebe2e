// Collects everything wrong with a configuration, so that it is shown at once.
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
  /// Reports what is allowed, but hardly meant.
  void warning(const Mark& mark, std::string message);
  bool has_errors() const { return !items_.empty(); }
  /// The number of errors so far.
  size_t count() const { return items_.size(); }
  const std::vector<Item>& items() const { return items_; }

  /// Throws a UserError with one line an error, "file:line:column: error: message", in the order of the
  /// places; the same message at the same place once; at most 100 lines and a count of the rest.
  void throw_if_errors() const;
  /// The warnings, as lines of the form and in the order of throw_if_errors.
  std::vector<std::string> warnings() const;

 private:
  std::vector<Item> items_, warnings_;
};

/// The error for one mistake that is found once everything was parsed: "configs/a.yaml:14:7: error: message".
UserError error_at(const Mark& mark, const std::string& message);
/// `message`, with the place before it where there is one.
std::string located(const Mark& place, const std::string& message);

/// Whether one of `candidates` looks as if `word` were it, misspelt.
bool is_near(std::string_view word, std::span<const std::string> candidates);
/// "; did you mean 'kernel_size'?" for the one of `candidates` that is called so elsewhere (aliases.h) or is
/// the nearest; "; it is ..." where something else is meant; "" where nothing is known.
std::string suggestion(std::string_view word, std::span<const std::string> candidates);
/// As suggestion(), and "; expected one of a, b, c" where that is empty.
std::string suggestion_or_list(std::string_view word, std::span<const std::string> candidates);

}  // namespace dtrain
