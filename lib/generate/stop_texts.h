// Finds the texts that end a generated text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dtrain {

/// Passes on a text that arrives in parts, up to the first stop text: the stop text that ends first; if
/// several end at the same place, the longest of them. The result does not depend on how the text is divided.
/// Holds back the end of a part that may be the beginning of a stop text.
class StopTexts {
 public:
  /// No text may be empty.
  explicit StopTexts(const std::vector<std::string>& texts) : texts_(texts) {}

  /// Returns the text that can be passed on with this part. Must not be called once found() is true.
  std::string add(std::string_view part);
  /// Returns whether a stop text was found. The stop text and later text are dropped.
  bool found() const { return found_; }
  /// Ends the text, and returns the part of it that was held back.
  std::string finish();

 private:
  std::vector<std::string> texts_;
  std::string held_;
  bool found_ = false;
};

}  // namespace dtrain
