#include "base/pattern.h"

namespace dtrain {

bool matches(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0;
  // Position of the last `*` in the pattern, and end of the part of the name that this `*` matches.
  size_t star = std::string_view::npos, taken = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::string_view matched_by_star(std::string_view pattern, std::string_view name) {
  return name.substr(pattern.find('*'), name.size() + 1 - pattern.size());
}

}  // namespace dtrain
