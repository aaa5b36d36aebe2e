// dtrain gpus: shows the devices of this machine, or of all processes, and the links between them.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/exit_deadline.h"
#include "base/text.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/process_group.h"
#include "collective/collective.h"
#include "collective/machine_share.h"
#include "commands.h"
#include "device/gpu_info.h"
#include "device/peer_access.h"
#include "print/libraries_json.h"
#include "print/link_table.h"
#include "processes/control.h"
#include "processes/mpi_library.h"
#include "processes/processes.h"
#include "runs/training.h"
#include "watch.h"

namespace dtrain {

namespace {

struct Found {
  CpuInfo cpu;
  GpuReport gpus;
  std::string nccl;              // version of NCCL; empty if not available
  std::string mpi;               // the MPI libraries that would be used, or "none"
  std::vector<GpuSpeed> speeds;  // speeds of each GPU, if measured
  std::vector<std::string> peer_notes;
  double all_reduce = 0;  // bytes per second over the GPUs of this process; 0 if not measured
};

bool reaches(const GpuInfo& from, int to) {
  return std::find(from.peers.begin(), from.peers.end(), to) != from.peers.end();
}

Json to_json(const CpuInfo& cpu) {
  Json json = Json::object();
  json.set("name", cpu.name).set("cores", cpu.cores);
  json.set("memory_total", static_cast<int64_t>(cpu.memory.total));
  json.set("memory_available", static_cast<int64_t>(cpu.memory.available));
  json.set("memory_limit", static_cast<int64_t>(cpu.memory.limit));
  json.set("memory_limit_from", cpu.memory.whose);
  json.set("instruction_set", cpu.instruction_set);
  return json;
}

Json to_json(const GpuInfo& gpu) {
  Json json = Json::object();
  json.set("index", gpu.index).set("name", gpu.name).set("uuid", gpu.uuid).set("pci", gpu.pci);
  if (!gpu.problem.empty()) json.set("problem", gpu.problem);
  json.set("memory_total", static_cast<int64_t>(gpu.memory_total));
  json.set("memory_free", static_cast<int64_t>(gpu.memory_free));
  json.set("compute_capability", gpu.capability).set("multiprocessors", gpu.multiprocessors);
  Json peers = Json::array();
  for (const int peer : gpu.peers) peers.push(peer);
  json.set("peers", std::move(peers));
  if (gpu.utilisation) json.set("utilisation_percent", *gpu.utilisation);
  if (gpu.temperature) json.set("temperature_celsius", *gpu.temperature);
  if (gpu.nvlinks) json.set("nvlinks", *gpu.nvlinks);
  return json;
}

Json to_json(const GpuSpeed& speed) {
  Json to_gpu = Json::array();
  for (const double bandwidth : speed.to_gpu) to_gpu.push(bandwidth);
  Json damaged = Json::array();
  for (const int gpu : speed.damaged) damaged.push(gpu);
  return Json::object()
      .set("host_to_device", speed.to_device)
      .set("device_to_host", speed.to_host)
      .set("within_device", speed.within)
      .set("to_gpu", std::move(to_gpu))
      .set("arrives_damaged_at", std::move(damaged));
}

Json gpus_to_json(const Found& found) {
  const GpuReport& report = found.gpus;
  Json json = Json::object().set("count", report.presence.count);
  if (report.presence.count == 0) return std::move(json.set("reason", report.presence.reason));
  json.set("driver", report.driver).set("cuda_driver", report.cuda_driver);
  json.set("cuda_runtime", report.cuda_runtime).set("cublaslt", report.cublaslt);
  json.set("cudnn", report.cudnn).set("nccl", found.nccl);
  json.set("libraries", libraries_json());
  if (!report.problems.empty()) {
    Json problems = Json::array();
    for (const std::string& problem : report.problems) problems.push(problem);
    json.set("problems", std::move(problems));
  }
  Json devices = Json::array();
  for (size_t i = 0; i < report.gpus.size(); ++i) {
    Json device = to_json(report.gpus[i]);
    if (i < found.speeds.size()) device.set("bytes_per_second", to_json(found.speeds[i]));
    devices.push(std::move(device));
  }
  if (!found.peer_notes.empty()) {
    Json notes = Json::array();
    for (const std::string& note : found.peer_notes) notes.push(note);
    json.set("notes", std::move(notes));
  }
  if (found.all_reduce > 0) json.set("all_reduce_bytes_per_second", found.all_reduce);
  return std::move(json.set("devices", std::move(devices)));
}

std::string describe(const CpuInfo& cpu) {
  return fmt::format("cpu  {}: {}, {} of {} memory available, {}\n     at most {} for a run: {}\n", cpu.name,
                     format_plural(cpu.cores, "core"), format_bytes(cpu.memory.available),
                     format_bytes(cpu.memory.total), cpu.instruction_set, format_bytes(cpu.memory.limit),
                     cpu.memory.whose);
}

std::string describe_versions(const GpuReport& report, const std::string& nccl) {
  const auto version = [](const char* name, const std::string& of) {
    return of.empty() ? fmt::format("no {}", name) : fmt::format("{} {}", name, of);
  };
  const std::string driver = report.driver.empty() ? "driver" : "driver " + report.driver;
  return fmt::format("{} for CUDA {}, CUDA runtime {}, {}, {}, {}", driver, report.cuda_driver,
                     report.cuda_runtime, version("cuBLASLt", report.cublaslt),
                     version("cuDNN", report.cudnn), version("NCCL", nccl));
}

std::string describe(const GpuInfo& gpu) {
  if (!gpu.problem.empty())
    return fmt::format("gpu:{}  {}cannot be used: {}\n", gpu.index, gpu.name.empty() ? "" : gpu.name + ": ",
                       gpu.problem);
  std::string text = fmt::format(
      "gpu:{}  {}: {} of {} memory free, compute capability {}, {} multiprocessors\n       {}, PCI {}",
      gpu.index, gpu.name, format_bytes(gpu.memory_free), format_bytes(gpu.memory_total), gpu.capability,
      gpu.multiprocessors, gpu.uuid, gpu.pci);
  if (gpu.temperature) text += fmt::format(", {} degrees Celsius", *gpu.temperature);
  if (gpu.utilisation) text += fmt::format(", {} % busy", *gpu.utilisation);
  if (gpu.nvlinks) text += ", " + format_plural(*gpu.nvlinks, "NVLink");
  return text + "\n";
}

std::string describe(const GpuSpeed& speed) {
  std::string text =
      fmt::format("       from the host {}, to the host {}, within (read and written) {}",
                  format_rate(speed.to_device), format_rate(speed.to_host), format_rate(speed.within));
  for (size_t to = 0; to < speed.to_gpu.size(); ++to)
    if (speed.to_gpu[to] > 0) text += fmt::format(", to gpu:{} {}", to, format_rate(speed.to_gpu[to]));
  text += "\n";
  for (const int gpu : speed.damaged)
    text += fmt::format("       data copied to gpu:{} arrives corrupted\n", gpu);
  return text;
}

/// Formats a table that shows which GPUs can directly access the memory of which other GPUs.
std::string peer_matrix(const std::vector<GpuInfo>& gpus) {
  std::vector<Table::Column> columns = {{"peer access"}};
  for (const GpuInfo& gpu : gpus) columns.push_back({fmt::format("to gpu:{}", gpu.index)});
  Table table(std::move(columns));
  for (const GpuInfo& from : gpus) {
    std::vector<std::string> row = {fmt::format("gpu:{}", from.index)};
    for (const GpuInfo& to : gpus)
      row.push_back(from.index == to.index ? "" : reaches(from, to.index) ? "yes" : "no");
    table.add(std::move(row));
  }
  return table.str();
}

std::string describe(const Found& found) {
  const GpuReport& report = found.gpus;
  std::string text = describe(found.cpu) + fmt::format("mpi  {}\n", found.mpi);
  if (report.presence.count == 0) return text + fmt::format("gpu  no GPU ({})\n", report.presence.reason);
  text += fmt::format("gpu  {}; {}\n", format_plural(report.presence.count, "GPU"),
                      describe_versions(report, found.nccl));
  for (size_t i = 0; i < report.gpus.size(); ++i) {
    text += describe(report.gpus[i]);
    if (i < found.speeds.size() && found.speeds[i].within > 0) text += describe(found.speeds[i]);
  }
  for (const GpuLibrary& library : opened_gpu_libraries())
    text += fmt::format("     {} {}: {}\n", library.name, library.version, library.path);
  for (const std::string& problem : report.problems) text += fmt::format("     {}\n", problem);
  if (report.gpus.size() > 1) text += peer_matrix(report.gpus);
  for (const std::string& note : found.peer_notes) text += note + "\n";
  if (found.all_reduce > 0)
    text += fmt::format("NCCL sums {} of gradients over all GPUs\n", format_rate(found.all_reduce));
  return text;
}

Json to_json(const Found& found) {
  return Json::object().set("cpu", to_json(found.cpu)).set("gpu", gpus_to_json(found)).set("mpi", found.mpi);
}

bool all_usable(const GpuReport& report) {
  return report.presence.count > 0 && std::all_of(report.gpus.begin(), report.gpus.end(),
                                                  [](const GpuInfo& gpu) { return gpu.problem.empty(); });
}

/// Returns true if copies between GPUs do not arrive correctly. In this case, NCCL reductions often hang.
bool is_damaged(const Found& found) {
  return std::any_of(found.speeds.begin(), found.speeds.end(),
                     [](const auto& speed) { return !speed.damaged.empty(); });
}

constexpr size_t kAllReduceBytes = size_t{256} << 20;

/// Measures an NCCL all-reduce over the GPUs of all processes of `among`. If NCCL does not finish, the
/// process ends, and process 0 of `world` prints what it has found and measured.
double measure_nccl_sum(const Found& found, World& among, World& world) {
  ExitDeadline deadline;
  ExitDeadline::Ending ending = world.end_with_error(
      fmt::format(
          "NCCL did not sum over the GPUs within {:g} seconds. Set NCCL_DEBUG=INFO in the environment to "
          "see what NCCL does. If GPUs report access to each other's memory but do not have it, set "
          "NCCL_P2P_DISABLE=1",
          connection_limit().count()),
      connection_limit());
  if (!ending.message.empty()) ending.message.insert(0, describe(found));
  deadline.arm(std::move(ending));
  return measure_all_reduce(found.gpus.presence.count, kAllReduceBytes, among);
}

void measure_devices(Found& found, World& world) {
  found.speeds = measure_gpus();
  found.peer_notes = peer_access_notes();
  if (!is_damaged(found) && all_usable(found.gpus) && found.gpus.presence.count > 1 && nccl_available())
    found.all_reduce = measure_nccl_sum(found, single_process(), world);
}

/// Describes the devices of this process, and measures them if `measure` is set. `machines`: the machines of
/// all processes, indexed by rank. Processes of one machine measure one after the other.
Found find_devices(World& world, const std::vector<std::string>& machines, bool measure) {
  Found found;
  found.cpu = cpu_info();
  found.mpi = describe_mpi_libraries();
  found.gpus = gpu_report();
  if (found.gpus.presence.count > 0) found.nccl = nccl_version();
  if (!measure) return found;
  std::map<std::string, int64_t> processes;
  int64_t turn = 0, turns = 0;
  for (size_t rank = 0; rank < machines.size(); ++rank) {
    const int64_t of_rank = processes[machines[rank]]++;
    if (static_cast<int>(rank) == world.rank()) turn = of_rank;
    turns = std::max(turns, of_rank + 1);
  }
  for (int64_t now = 0; now < turns; ++now) {
    if (now == turn && found.gpus.presence.count > 0) measure_devices(found, world);
    if (turns > 1) world.any(false);
  }
  return found;
}

/// Returns the reason why NCCL cannot run an all-reduce over the GPUs of all processes; "" if it can.
std::string find_nccl_problem(World& world, const Found& found) {
  std::vector<int> gpus;
  for (const GpuInfo& gpu : found.gpus.gpus) gpus.push_back(gpu.index);
  std::string shared = find_shared_gpu(world, gpus);
  if (world.any(!all_usable(found.gpus))) return "not all GPUs can be used";
  if (world.any(!nccl_available())) return "NCCL was not found";
  if (world.any(is_damaged(found))) return "copies between GPUs are damaged";
  return shared;
}

Communication measure_communication(World& world, std::vector<std::string> machines, const Found& found) {
  Communication measured;
  measured.machines = std::move(machines);
  measured.links = measure_links(world, measured.machines);
  measured.sum_seconds = measure_process_sum(world, Communication::kSumBytes);
  if (world.any(found.gpus.presence.count == 0)) return measured;
  measured.no_all_reduce = find_nccl_problem(world, found);
  if (measured.no_all_reduce.empty()) measured.all_reduce = measure_nccl_sum(found, world, world);
  return measured;
}

/// Prints the devices of all processes, machine by machine.
void list_devices(const OutputOptions& output, bool measure, World& world) {
  const std::vector<std::string> machines = world.all_gather_texts(host_name());
  const Found found = find_devices(world, machines, measure);
  if (world.size() == 1) {
    if (output.json) print_json(to_json(found));
    if (output.text()) print_text(describe(found));
    return;
  }
  std::optional<Communication> measured;
  if (measure) measured = measure_communication(world, machines, found);
  const std::string name = process_name(host_name(), world.rank(), world.size());
  const std::vector<std::string> texts = world.all_gather_texts(fmt::format("{}\n{}", name, describe(found)));
  const std::vector<std::string> facts = world.all_gather_texts(to_json(found).dump());
  if (output.json) {
    Json processes = Json::array();
    for (size_t rank = 0; rank < facts.size(); ++rank)
      processes.push(
          Json::parse(facts[rank]).set("process", static_cast<int64_t>(rank)).set("machine", machines[rank]));
    Json json = Json::object().set("processes", std::move(processes));
    if (measured) json.set("communication", communication_json(*measured));
    print_json(json);
  }
  if (!output.text()) return;
  std::string text = fmt::format("{}", fmt::join(texts, "\n"));
  if (measured) text += "\n" + communication_text(*measured);
  print_text(text);
}

}  // namespace

void add_gpus(CommandLine& line, World& world) {
  Command command = line.add_command("gpus",
                                     "Show the devices of this machine. If mpirun or srun starts the "
                                     "command, show the devices of all machines");
  const auto output = std::make_shared<OutputOptions>();
  const auto measure = std::make_shared<bool>(false);
  command.add_flag("--measure", *measure,
                   "Measure the speed of copies to, from, within and between the GPUs, of sums over all "
                   "GPUs, and of the links between the machines");
  const auto watch = std::make_shared<bool>(false);
  const auto watching = std::make_shared<WatchOptions>();
  const Option watch_flag = command
                                .add_flag("--watch", *watch,
                                          "Monitor the devices: show their utilization, memory, power, "
                                          "temperature and processes repeatedly")
                                .excludes(command.option("--measure"));
  command.add_option("--interval", watching->interval, "Seconds between updates (default: 1)")
      .at_least(1)
      .type_name("SECONDS")
      .needs(watch_flag);
  command.add_option("--count", watching->count, "End after N updates")
      .at_least(1)
      .type_name("N")
      .needs(watch_flag);
  add_interface_option(command);
  add_output_options(command, *output);
  command.callback([output, measure, watch, watching, &world] {
    if (*watch) return watch_devices(*output, *watching);
    in_world(world, [&] { list_devices(*output, *measure, world); });
  });
}

}  // namespace dtrain
