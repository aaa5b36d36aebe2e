// Bytes that are no UTF-8 in YAML: "\udc80" to "\udcff" between double quotes (base/utf8.h).
#pragma once

#include <string>
#include <string_view>

namespace dtrain {

/// Makes the escapes known to a parser that refuses them, as yaml-cpp does, since YAML has no surrogates: it
/// is given others of the same length, for characters that the text does not use (of those which Unicode
/// leaves to private use), and what it makes of them becomes bytes again.
class ByteEscapes {
 public:
  explicit ByteEscapes(std::string_view text);

  /// What the parser is to read; of the same length as the text, which has to outlive this.
  std::string_view text() const { return changed_.empty() ? text_ : changed_; }
  /// Of what the parser read in a scalar, what the text means.
  std::string restore(std::string scalar) const;

 private:
  std::string_view text_;
  std::string changed_;     // empty where the text has no such escape
  unsigned stand_ins_ = 0;  // the upper byte of the characters that stand in
};

}  // namespace dtrain
