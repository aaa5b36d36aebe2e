#include "data/located_error.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dtrain {

namespace {

std::string lines_of(const std::vector<Diagnostics::Item>& errors) {
  std::vector<std::string> lines;
  for (const auto& [mark, message] : errors) lines.push_back(located(mark, message));
  return fmt::format("{}", fmt::join(lines, "\n"));
}

}  // namespace

LocatedError::LocatedError(const Mark& mark, const std::string& message)
    : LocatedError(std::vector<Diagnostics::Item>{{mark, message}}) {}

LocatedError::LocatedError(std::vector<Diagnostics::Item> errors)
    : UserError(lines_of(errors)), errors_(std::move(errors)) {}

LocatedError LocatedError::with_default(const Mark& mark) const {
  std::vector<Diagnostics::Item> all = errors_;
  for (Diagnostics::Item& error : all)
    if (!error.mark.file) error.mark = mark;
  return LocatedError(std::move(all));
}

void ErrorCollector::add(const LocatedError& error) {
  for (const Diagnostics::Item& item : error.errors()) {
    const auto is_same = [&](const Diagnostics::Item& other) {
      return other.message == item.message && other.mark.str() == item.mark.str();
    };
    if (std::none_of(errors_.begin(), errors_.end(), is_same)) errors_.push_back(item);
  }
}

void ErrorCollector::throw_if_errors() const {
  if (errors_.empty()) return;
  std::vector<Diagnostics::Item> sorted = errors_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    const auto place = [](const Mark& mark) {
      return std::tuple(mark.file ? *mark.file : std::string(), mark.line, mark.column);
    };
    return place(a.mark) < place(b.mark);
  });
  throw LocatedError(std::move(sorted));
}

}  // namespace dtrain
