// Finds stop texts, which end a generated text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dtrain {

/// Receives a text in parts, and returns it up to the first stop text. The first stop text is the stop text
/// that ends first; if several end at the same position, it is the longest of these. The result does not
/// depend on how the text is divided into parts: the end of a part is held back while it may be the beginning
/// of a stop text.
class StopTexts {
 public:
  /// `texts`: the stop texts, none of which may be empty.
  explicit StopTexts(const std::vector<std::string>& texts) : texts_(texts) {}

  /// Adds a part, and returns the additional text that is certain not to belong to a stop text. Must not be
  /// called once found() is true.
  std::string add(std::string_view part);
  /// Returns whether a stop text was found. The stop text and later text are dropped.
  bool found() const { return found_; }
  /// Ends the text, and returns the end of the text that was held back.
  std::string finish();

 private:
  std::vector<std::string> texts_;
  std::string held_;
  bool found_ = false;
};

}  // namespace dtrain
