#include "data/pictures/class_numbers.h"

#include <algorithm>

namespace dtrain {

namespace {

bool is_of_digits(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::vector<std::string> label_texts(const std::vector<std::string>& names, const std::string& first) {
  if (!is_of_digits(first) || std::any_of(names.begin(), names.end(), is_of_digits)) return names;
  std::vector<std::string> numbers;
  for (size_t i = 0; i < names.size(); ++i) numbers.push_back(std::to_string(i));
  return numbers;
}

}  // namespace dtrain
