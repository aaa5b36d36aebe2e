// Bytes that are no UTF-8 in YAML: "\udc80" to "\udcff" between double quotes (base/utf8.h).
#pragma once

#include <string>
#include <string_view>

namespace dtrain {

/// Brings the escapes through a parser that refuses them, as yaml-cpp does, since YAML has no surrogates. The
/// parser reads other escapes of the same length, of characters that the text does not use (from those which
/// Unicode leaves to private use), and restore() makes bytes of these characters again.
class ByteEscapes {
 public:
  explicit ByteEscapes(std::string_view text);

  /// The text that the parser is to read. It has the length of the original, which has to outlive this.
  std::string_view text() const { return changed_.empty() ? text_ : changed_; }
  /// What the original means by a scalar that the parser read.
  std::string restore(std::string scalar) const;

 private:
  std::string_view text_;
  std::string changed_;     // empty where the text has no such escape
  unsigned stand_ins_ = 0;  // the upper byte of the characters that stand in
};

}  // namespace dtrain
