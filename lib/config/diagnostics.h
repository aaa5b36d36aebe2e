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
  void error(const Node& node, std::string message) { error(node.mark(), std::move(message)); }
  bool has_errors() const { return !items_.empty(); }
  size_t count() const { return items_.size(); }
  const std::vector<Item>& items() const { return items_; }

  /// Throws a UserError with one line an error, "file:line:column: error: message", in the order of the
  /// places; the same message at the same place once; at most 100 lines and a count of the rest.
  void throw_if_errors() const;

 private:
  std::vector<Item> items_;
};

/// "; did you mean 'kernel_size'?" for the nearest of `candidates` where one is near enough, else "".
std::string suggestion(std::string_view word, std::span<const std::string> candidates);
/// The same, and where nothing is near "; expected one of a, b, c".
std::string suggestion_or_list(std::string_view word, std::span<const std::string> candidates);

}  // namespace dtrain
