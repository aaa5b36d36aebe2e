#include "invocation.h"

#include <array>
#include <ctime>
#include <filesystem>
#include <string>
#include <system_error>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "device/device.h"

namespace dtrain {

namespace {

std::vector<std::string> command;

/// Bytes of the character that `text` begins with; 0 where that is no UTF-8.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const size_t length = first < 0x80   ? 1
                        : first < 0xc2 ? 0
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                        : first < 0xf5 ? 4
                                       : 0;
  if (length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  // Longer than need be, surrogates, beyond the last one.
  if (length > 2 && ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) ||
                     (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f)))
    return 0;
  return length;
}

/// JSON is UTF-8; what people call their files need not be.
std::string to_utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    out += length > 0 ? std::string(text.substr(0, length))
                      : fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    text.remove_prefix(length > 0 ? length : 1);
  }
  return out;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace

void remember_command(int argc, char** argv) {
  command.assign(argv, argv + argc);
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
  for (const std::string& word : command) words.push(to_utf8(word));
  const CpuInfo cpu = cpu_info();
  std::error_code unknown;
  return event.set("command", std::move(words))
      .set("version", DTRAIN_VERSION)
      .set("machine",
           Json::object().set("name", to_utf8(host_name())).set("cpu", cpu.name).set("cores", cpu.cores))
      .set("working_directory", to_utf8(std::filesystem::current_path(unknown).string()))
      .set("process", static_cast<int64_t>(::getpid()));
}

}  // namespace dtrain
