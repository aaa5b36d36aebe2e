#include "interop/keras/files/class_paths.h"

#include <cctype>

#include <fmt/format.h>

namespace dtrain {

std::string keras_snake_case(std::string_view name) {
  // Keras exports the class GroupedQueryAttention under this shorter name, but weight files contain the
  // full name.
  if (name == "GroupQueryAttention") name = "GroupedQueryAttention";
  std::string snake;
  for (size_t i = 0; i < name.size(); ++i) {
    const auto is = [&](size_t at, auto test) {
      return at < name.size() && test(static_cast<unsigned char>(name[at])) != 0;
    };
    const bool upper = is(i, [](int c) { return std::isupper(c); });
    const bool after_lower = i > 0 && is(i - 1, [](int c) { return std::islower(c) || std::isdigit(c); });
    const bool before_lower = i > 0 && is(i + 1, [](int c) { return std::islower(c); }) &&
                              is(i - 1, [](int c) { return std::isupper(c); });
    const bool after_digit = i > 0 && is(i - 1, [](int c) { return std::isdigit(c); });
    // The suffixes "2D" and "3D" are not separated by underscores.
    const bool is_dimension = after_digit && name[i] == 'D';
    if (upper && !is_dimension && (after_lower || before_lower)) snake += '_';
    snake += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  return snake;
}

std::string KerasClassNumbers::next(const std::string& class_name, int count) {
  const std::string name = keras_snake_case(class_name);
  int& number = numbers_.try_emplace(name, 0).first->second;
  const std::string numbered = number ? fmt::format("{}_{}", name, number) : name;
  number += count;
  return numbered;
}

}  // namespace dtrain
