#include "processes/launcher_prefix.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

namespace dtrain {

namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 9> kLaunchers = {
    "orterun", "orted", "prterun", "prted", "prte", "mpirun", "mpiexec", "mpiexec.hydra", "hydra_pmi_proxy"};

/// Returns the parent of a process, 0 if it is unknown.
int parent_of(int process) {
  std::ifstream status(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("PPid:")) return std::atoi(line.c_str() + 5);
  return 0;
}

}  // namespace

std::vector<fs::path> launcher_library_folders() {
  constexpr int kMostAncestors = 16;
  int process = ::getppid();
  for (int i = 0; i < kMostAncestors && process > 1; ++i, process = parent_of(process)) {
    std::error_code unknown;
    const fs::path program = fs::read_symlink(fmt::format("/proc/{}/exe", process), unknown);
    if (unknown) continue;
    if (std::find(kLaunchers.begin(), kLaunchers.end(), program.filename().string()) == kLaunchers.end())
      continue;
    const fs::path prefix = program.parent_path().parent_path();
    return {prefix / "lib", prefix / "lib64"};
  }
  return {};
}

}  // namespace dtrain
