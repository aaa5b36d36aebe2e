#include "cli/invocation.h"

#include <array>
#include <ctime>
#include <filesystem>
#include <string>
#include <system_error>
#include <unistd.h>
#include <vector>

#include "device/device.h"
#include "processes/processes.h"

namespace dtrain {

namespace {

std::vector<std::string> remembered_command;

}  // namespace

void remember_command(int argc, char** argv) {
  remembered_command.assign(argv, argv + argc);
}

std::string format_time_now() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  std::array<char, 64> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S%z", &local);
  return text.data();
}

Json& describe_invocation(Json& event) {
  Json words = Json::array();
  for (const std::string& word : remembered_command) words.push(word);
  const CpuInfo cpu = cpu_info();
  std::error_code unknown;
  return event.set("command", std::move(words))
      .set("version", DTRAIN_VERSION)
      .set("machine", Json::object().set("name", host_name()).set("cpu", cpu.name).set("cores", cpu.cores))
      .set("working_directory", std::filesystem::current_path(unknown).string())
      .set("process", static_cast<int64_t>(::getpid()));
}

}  // namespace dtrain
