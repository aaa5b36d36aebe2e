#include "watch.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/text.h"
#include "base/utf8.h"
#include "cli/console.h"
#include "device/load.h"

namespace dtrain {

namespace {

Json to_json(const CpuLoad& load) {
  Json cores = Json::object();
  for (const auto& [core, busy] : load.cores) cores.set(std::to_string(core), busy);
  return Json::object()
      .set("busy", std::move(cores))
      .set("memory_used", static_cast<int64_t>(load.memory_used))
      .set("memory_total", static_cast<int64_t>(load.memory_total));
}

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json to_json(const GpuLoad& load) {
  Json processes = Json::array();
  for (const GpuProcess& process : load.processes)
    processes.push(Json::object()
                       .set("process", process.pid)
                       .set("name", process.name)
                       .set("memory", process.memory ? Json(static_cast<int64_t>(*process.memory)) : Json()));
  return Json::object()
      .set("index", or_null(load.index))
      .set("pci", load.pci)
      .set("name", load.name)
      .set("utilisation_percent", or_null(load.utilisation))
      .set("memory_used", static_cast<int64_t>(load.memory_used))
      .set("memory_total", static_cast<int64_t>(load.memory_total))
      .set("temperature_celsius", or_null(load.temperature))
      .set("power_watts", or_null(load.power))
      .set("power_limit_watts", or_null(load.power_limit))
      .set("processes", std::move(processes));
}

/// Formats a bar such as "[=====     ]  52 %".
std::string bar(double share) {
  constexpr size_t kWidth = 20;
  const auto done = static_cast<size_t>(std::lround(std::clamp(share, 0.0, 1.0) * kWidth));
  return fmt::format("[{}{}] {:3.0f} %", std::string(done, '='), std::string(kWidth - done, ' '),
                     100 * share);
}

std::string memory_text(uint64_t used, uint64_t total) {
  return fmt::format("{} of {}", format_bytes(used), format_bytes(total));
}

std::vector<std::string> lines_of(const CpuLoad& load) {
  double sum = 0;
  for (const auto& [core, busy] : load.cores) sum += busy;
  const double mean = load.cores.empty() ? 0 : sum / static_cast<double>(load.cores.size());
  std::vector<std::string> lines = {fmt::format(
      "cpu    {}  {}  memory {}", bar(mean), format_plural(static_cast<int64_t>(load.cores.size()), "core"),
      memory_text(load.memory_used, load.memory_total))};
  // Shows the utilization of each core on one line, if the machine has so few cores that the line is
  // readable.
  constexpr size_t kMost = 32;
  if (load.cores.size() < 2 || load.cores.size() > kMost) return lines;
  std::string each = "       each (%):";
  for (const auto& [core, busy] : load.cores) each += fmt::format(" {:.0f}", 100 * busy);
  lines.push_back(std::move(each));
  return lines;
}

std::vector<std::string> lines_of(const GpuLoad& load) {
  const std::string called = load.index ? fmt::format("gpu:{}", *load.index) : "other " + load.pci;
  std::string line = fmt::format("{}  {}  memory {}", called,
                                 load.utilisation ? bar(*load.utilisation / 100.0) : "utilisation unknown",
                                 memory_text(load.memory_used, load.memory_total));
  if (load.power)
    line += fmt::format("  {:.0f}{} W", *load.power,
                        load.power_limit ? fmt::format(" of {:.0f}", *load.power_limit) : "");
  if (load.temperature) line += fmt::format("  {} C", *load.temperature);
  std::vector<std::string> lines = {line + "  " + load.name};
  for (const GpuProcess& process : load.processes)
    lines.push_back(fmt::format("       process {} {}{}", process.pid, process.name,
                                process.memory ? ", " + format_bytes(*process.memory) : ""));
  return lines;
}

/// Draws lines in place of the previous lines.
class Screen {
 public:
  void draw(const std::vector<std::string>& lines) {
    const size_t width = terminal_width();
    std::string text = drawn_ > 0 ? fmt::format("\x1b[{}A\r\x1b[J", drawn_) : "";
    for (const std::string& line : lines) text += visible_in_line(line).substr(0, width - 1) + "\n";
    drawn_ = lines.size();
    print_bytes(text);
  }

 private:
  size_t drawn_ = 0;
};

}  // namespace

void watch_devices(const OutputOptions& output, const WatchOptions& options) {
  CpuWatch cpu;
  const GpuWatch gpu;
  Screen screen;
  const bool in_place = ::isatty(STDOUT_FILENO) == 1 && stderr_is_lively();
  bool is_read = true;
  for (int64_t look = 1; is_read; ++look) {
    std::this_thread::sleep_for(std::chrono::seconds(options.interval.value_or(1)));
    const CpuLoad host = cpu.look();
    const std::vector<GpuLoad> gpus = gpu.look();
    if (output.json) {
      Json list = Json::array();
      for (const GpuLoad& load : gpus) list.push(to_json(load));
      is_read =
          print_bytes(Json::object().set("cpu", to_json(host)).set("gpus", std::move(list)).dump() + "\n");
    } else if (output.text()) {
      std::vector<std::string> lines = lines_of(host);
      for (const GpuLoad& load : gpus)
        for (std::string& line : lines_of(load)) lines.push_back(std::move(line));
      if (gpus.empty()) lines.push_back(fmt::format("gpu    none: {}", gpu.reason()));
      if (in_place) {
        screen.draw(lines);
      } else {
        for (const std::string& line : lines) is_read = print_text(line + "\n") && is_read;
      }
    }
    if (options.count == look) return;
  }
}

}  // namespace dtrain
