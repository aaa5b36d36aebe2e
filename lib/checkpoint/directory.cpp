#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "checkpoint/checkpoint.h"

namespace dtrain {

namespace fs = std::filesystem;

std::string checkpoint_name(int64_t step) {
  return fmt::format("ckpt-{:08}.h5", step);
}

std::optional<int64_t> checkpoint_step(const std::string& name) {
  constexpr size_t kPrefix = 5;  // of "ckpt-"
  if (name.size() <= kPrefix) return std::nullopt;
  int64_t step = 0;
  std::from_chars(name.data() + kPrefix, name.data() + name.size(), step);
  if (step < 0 || name != checkpoint_name(step)) return std::nullopt;
  return step;
}

std::vector<std::string> list_checkpoints(const std::string& directory) {
  std::vector<std::pair<int64_t, std::string>> found;
  std::error_code missing;
  for (fs::directory_iterator entry(directory, missing), end; !missing && entry != end;
       entry.increment(missing))
    if (const auto step = checkpoint_step(entry->path().filename().string()))
      found.emplace_back(*step, entry->path().string());
  std::sort(found.begin(), found.end());
  std::vector<std::string> paths;
  for (auto& [step, path] : found) paths.push_back(std::move(path));
  return paths;
}

}  // namespace dtrain
