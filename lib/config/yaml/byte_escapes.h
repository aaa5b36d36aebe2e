// Bytes that are not UTF-8 in YAML: written as "\udc80" to "\udcff" in double quotes (base/utf8.h).
#pragma once

#include <string>
#include <string_view>

namespace dtrain {

/// Passes these escapes through yaml-cpp, which rejects them because YAML has no surrogates. They are
/// replaced with escapes of the same length for private-use characters that the text does not contain;
/// restore() turns these characters into bytes.
class ByteEscapes {
 public:
  explicit ByteEscapes(std::string_view text);

  /// Returns the text to parse. It has the length of the original, which must outlive this object.
  std::string_view text() const { return changed_.empty() ? text_ : changed_; }
  /// Returns the original value of a scalar that the parser returned.
  std::string restore(std::string scalar) const;

 private:
  std::string_view text_;
  std::string changed_;     // empty if the text has no such escape
  unsigned stand_ins_ = 0;  // upper byte of the stand-in characters
};

}  // namespace dtrain
