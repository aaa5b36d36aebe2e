#include <algorithm>
#include <charconv>
#include <filesystem>

#include <fmt/format.h>

#include "checkpoint/checkpoint.h"

namespace dtrain {

std::string checkpoint_name(int64_t step) {
  return fmt::format("ckpt-{:08}.h5", step);
}

std::optional<int64_t> checkpoint_step(const std::string& name) {
  constexpr size_t kPrefix = 5;  // length of "ckpt-"
  if (name.size() <= kPrefix) return std::nullopt;
  int64_t step = 0;
  std::from_chars(name.data() + kPrefix, name.data() + name.size(), step);
  if (step < 0 || name != checkpoint_name(step)) return std::nullopt;
  return step;
}

std::vector<int64_t> checkpoint_steps(const Location& directory) {
  std::vector<int64_t> steps;
  for (const std::string& name : names_in(directory))
    if (const auto step = checkpoint_step(name)) steps.push_back(*step);
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::vector<std::string> list_checkpoints(const std::string& directory) {
  std::vector<std::string> paths;
  for (const int64_t step : checkpoint_steps(directory))
    paths.push_back((std::filesystem::path(directory) / checkpoint_name(step)).string());
  return paths;
}

}  // namespace dtrain
