// Bytes that are not valid UTF-8 in YAML. They are written as "\udc80" to "\udcff" in double quotes
// (base/utf8.h).
#pragma once

#include <string>
#include <string_view>

namespace dtrain {

/// Makes yaml-cpp accept escapes for bytes, which it would reject because YAML has no surrogates. Before
/// parsing, the escapes are replaced by escapes of the same length for private-use characters that do not
/// occur in the text (stand-in characters). After parsing, restore() replaces the stand-in characters by the
/// bytes.
class ByteEscapes {
 public:
  explicit ByteEscapes(std::string_view text);

  /// Returns the text to parse. It has the same length as the original text. The original text must outlive
  /// this object.
  std::string_view text() const { return changed_.empty() ? text_ : changed_; }
  /// Converts the stand-in characters of a parsed scalar back to the original bytes.
  std::string restore(std::string scalar) const;

 private:
  std::string_view text_;
  std::string changed_;     // empty if the text contains no escapes for bytes
  unsigned stand_ins_ = 0;  // upper byte of the stand-in characters
};

}  // namespace dtrain
