#include "print/fit_table.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"

namespace dtrain {

namespace {

std::string bytes_text(int64_t bytes) {
  return format_bytes(static_cast<uint64_t>(std::max<int64_t>(bytes, 0)));
}

/// Returns a description of the machine, e.g. "4 GPUs with 78 GiB for a run, 400 GB per second between two".
std::string machine_text(const Machine& machine) {
  const std::string link = bytes_text(static_cast<int64_t>(machine.link)) + " per second between two";
  if (machine.kind == DeviceId::Kind::cpu)
    return fmt::format("{} of this host, which share {} and {}; {}",
                       format_plural(machine.devices, "logical device"), bytes_text(machine.bytes),
                       format_plural(machine.cores, "core"), link);
  const std::string memory =
      machine.requested_bytes > 0
          ? fmt::format("{} each, of which a run can use {} (CUDA and its libraries use the rest)",
                        bytes_text(machine.requested_bytes), bytes_text(machine.bytes))
          : bytes_text(machine.bytes) + " for a run";
  return fmt::format("{} with {}, {}", format_plural(machine.devices, "GPU"), memory, link);
}

/// Returns a sentence about the number of devices if the user has not given it, else "".
std::string devices_text(const Machine& machine) {
  if (machine.device_count == DeviceCount::requested) return "";
  return fmt::format("The number of devices is that of {}; --devices changes it.\n",
                     machine.device_count == DeviceCount::of_host ? "this machine's GPUs"
                                                                  : "the devices in the configuration");
}

/// Returns the configuration changes that a candidate requires, as YAML with comments.
std::string yaml_of(const RunConfig& config, const Candidate& candidate) {
  std::string yaml = ConfigNode::mapping({ConfigNode::entry("strategy", candidate.strategy)}).to_yaml();
  if (yaml.back() != '\n') yaml += '\n';
  const auto& nodes = config.graph.nodes;
  if (std::any_of(nodes.begin(), nodes.end(), [](const GraphNode& node) { return node.device.has_value(); }))
    yaml += "# remove every `device:` from the model\n";
  if (!candidate.recomputed.empty())
    yaml +=
        fmt::format("# add `recompute: true` in the model, to {}\n", fmt::join(candidate.recomputed, ", "));
  if (candidate.batch_size != config.train.batch_size)
    yaml += fmt::format("# train.batch_size: {}, because the configured batch size {} does not fit\n",
                        candidate.batch_size, config.train.batch_size);
  return yaml;
}

Json recomputed_json(const Candidate& candidate) {
  Json list = Json::array();
  for (const std::string& block : candidate.recomputed) list.push(block);
  return list;
}

std::string table_of(const Machine& machine, const std::vector<Candidate>& candidates) {
  constexpr auto kRight = Table::Align::right;
  Table table({{"", kRight},
               {"strategy"},
               {"batch", kRight},
               {"samples/s", kRight},
               {"ms/step", kRight},
               {"fullest"},
               {"needs", kRight},
               {"of", kRight},
               {""}});
  int rank = 0;
  for (const Candidate& candidate : candidates) {
    if (!candidate.refusal.empty()) continue;
    const auto time = [&](double value, double least) {
      return candidate.fits
                 ? value < least ? fmt::format("{:.2g}", value) : format_count(static_cast<int64_t>(value))
                 : "-";
    };
    table.add({candidate.fits ? std::to_string(++rank) : "", candidate.name,
               format_count(candidate.batch_size), time(candidate.samples_per_second(), 10),
               time(candidate.step_seconds * 1e3, 10), candidate.device,
               bytes_text(candidate.bytes + candidate.copy_bytes), bytes_text(machine.bytes),
               candidate.fits ? "" : "does not fit"});
  }
  return table.str();
}

}  // namespace

std::string fit_text(const RunConfig& config, const Machine& machine,
                     const std::vector<Candidate>& candidates) {
  std::string text = fmt::format("{}: {}\n{}\n{}", config.name, machine_text(machine), devices_text(machine),
                                 table_of(machine, candidates));
  text +=
      "\nThe bytes are derived from plans for the CPU. The samples per second are estimates for comparing "
      "the\nstrategies. They do not include the time for reading samples and for validation. Use\n`check "
      "--measure` to measure the speed.\n";
  int rank = 0;
  for (const Candidate& candidate : candidates) {
    if (!candidate.refusal.empty())
      text += fmt::format("\n# {} cannot be used: {}\n", candidate.name, candidate.refusal);
    else if (candidate.fits)
      text += fmt::format("\n# {}: {}\n{}", ++rank, candidate.name, yaml_of(config, candidate));
  }
  return text;
}

Json fit_json(const RunConfig& config, const Machine& machine, const std::vector<Candidate>& candidates) {
  Json list = Json::array();
  for (const Candidate& candidate : candidates)
    list.push(Json::object()
                  .set("name", candidate.name)
                  .set("yaml", yaml_of(config, candidate))
                  .set("recomputed", recomputed_json(candidate))
                  .set("batch_size", candidate.batch_size)
                  .set("fits", candidate.fits)
                  .set("device", candidate.device)
                  .set("bytes", candidate.bytes)
                  .set("copy_bytes", candidate.copy_bytes)
                  .set("step_seconds", candidate.fits ? Json(candidate.step_seconds) : Json())
                  .set("samples_per_second", candidate.fits ? Json(candidate.samples_per_second()) : Json())
                  .set("refusal", candidate.refusal.empty() ? Json() : Json(candidate.refusal)));
  return Json::object()
      .set("machine",
           Json::object()
               .set("kind", machine.kind == DeviceId::Kind::cpu ? "cpu" : "gpu")
               .set("devices", machine.devices)
               .set("bytes", machine.bytes)
               .set("requested_bytes", machine.requested_bytes > 0 ? Json(machine.requested_bytes) : Json())
               .set("bytes_per_second", machine.link))
      .set("estimated", true)
      .set("candidates", std::move(list));
}

}  // namespace dtrain
