// dtrain gpus: the devices of this machine.
#include <memory>

#include <fmt/format.h>

#include "commands.h"
#include "console.h"
#include "device/device.h"
#include "options.h"
#include "text.h"

namespace dtrain {

namespace {

void list_devices(const OutputOptions& output) {
  const CpuInfo cpu = cpu_info();
  const GpuPresence gpus = gpu_presence();
  if (output.json) {
    Json cpu_json = Json::object();
    cpu_json.set("name", cpu.name).set("cores", cpu.cores);
    cpu_json.set("memory_total", static_cast<int64_t>(cpu.memory_total));
    cpu_json.set("memory_available", static_cast<int64_t>(cpu.memory_available));
    cpu_json.set("instruction_set", cpu.instruction_set);
    Json gpu_json = Json::object().set("count", gpus.count);
    if (gpus.count == 0) gpu_json.set("reason", gpus.reason);
    print_json(Json::object().set("cpu", std::move(cpu_json)).set("gpu", std::move(gpu_json)));
  } else if (output.text()) {
    const std::string found =
        gpus.count == 0 ? fmt::format("no GPU ({})", gpus.reason) : format_plural(gpus.count, "GPU");
    print_text(fmt::format("cpu  {}: {}, {} of {} memory available, {}\ngpu  {}\n", cpu.name,
                           format_plural(cpu.cores, "core"), format_bytes(cpu.memory_available),
                           format_bytes(cpu.memory_total), cpu.instruction_set, found));
  }
}

}  // namespace

void add_gpus(CLI::App& app) {
  CLI::App* command = app.add_subcommand("gpus", "The devices of this machine");
  const auto output = std::make_shared<OutputOptions>();
  add_output_options(*command, *output);
  command->callback([output] { list_devices(*output); });
}

}  // namespace dtrain
