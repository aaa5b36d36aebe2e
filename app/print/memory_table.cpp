#include "print/memory_table.h"

#include <array>
#include <set>

#include <fmt/format.h>

#include "base/text.h"

namespace dtrain {

namespace {

/// A part of the memory in a plan. kParts has all parts in the order in which they are shown.
struct MemoryPart {
  const char* name;
  size_t MemoryPlan::*bytes;
};
constexpr std::array kParts{
    MemoryPart{"parameters", &MemoryPlan::parameters}, MemoryPart{"slots", &MemoryPlan::optimizer_slots},
    MemoryPart{"gradients", &MemoryPlan::gradients},   MemoryPart{"activations", &MemoryPlan::activations},
    MemoryPart{"staging", &MemoryPlan::staging},       MemoryPart{"data", &MemoryPlan::data},
    MemoryPart{"metrics", &MemoryPlan::metrics}};

std::string table_of(const MemoryView& view) {
  constexpr auto kRight = Table::Align::right;
  const bool has_slots = !view.placement.slots.empty();
  std::vector<Table::Column> columns{{"replica", kRight}};
  if (has_slots) columns.push_back({view.placement.microbatches > 1 ? "stage" : "slot", kRight});
  columns.push_back({"device"});
  if (has_slots) columns.push_back({"layers", kRight});
  for (const char* title : {"threads", "share", "of the last"}) columns.push_back({title, kRight});
  for (const MemoryPart& part : kParts) columns.push_back({part.name, kRight});
  columns.push_back({"total", kRight});
  Table table(columns);
  for (const MemoryPlan& plan : view.plans) {
    std::vector<std::string> row{std::to_string(view.rank(plan))};
    if (has_slots) row.push_back(std::to_string(plan.slot));
    row.push_back(plan.device.str());
    if (has_slots) row.push_back(format_count(view.layers(plan.slot)));
    row.push_back(std::to_string(plan.threads));
    row.push_back(format_count(plan.share));
    row.push_back(format_count(view.last_share(plan)));
    for (const MemoryPart& part : kParts) row.push_back(format_bytes(plan.*part.bytes));
    row.push_back(format_bytes(plan.total()));
    table.add(row);
  }
  return table.str();
}

}  // namespace

Json& set_bytes(Json& json, const MemoryPlan& plan) {
  for (const MemoryPart& part : kParts) json.set(part.name, static_cast<int64_t>(plan.*part.bytes));
  return json.set("total", static_cast<int64_t>(plan.total()));
}

int64_t MemoryView::layers(int slot) const {
  int64_t count = 0;
  for (int i = 0; i < std::ssize(graph.nodes); ++i) {
    const GraphNode& node = graph.nodes[static_cast<size_t>(i)];
    if (node.layer && !node.is_activation_of_previous && placement.slot_of(i) == slot) ++count;
  }
  return count;
}

std::string memory_text(const MemoryView& view) {
  std::string text = table_of(view);
  if (view.placement.replicas.size() > 1 && view.placement.sharded == ShardLevel::none)
    text +=
        "\nReplicas on the same memory share their parameters and optimizer slots. The table counts these "
        "bytes for the first of these replicas only.\n";
  std::set<std::string> on_host;
  size_t bytes = 0, transfers = 0;
  for (const MemoryPlan& plan : view.plans) {
    transfers += plan.transfers;
    if (plan.device.kind != DeviceId::Kind::cpu) continue;
    on_host.insert(plan.device.str());
    bytes += plan.total();
  }
  if (on_host.size() > 1)
    text += fmt::format(
        "\nThe {} devices cpu:N are logical devices of this host. Together they use {} of its memory.\n",
        on_host.size(), format_bytes(bytes));
  if (transfers > 0)
    text += fmt::format(
        "\nBuffers for the values that GPUs exchange with other processes need another {} of host memory.\n",
        format_bytes(transfers));
  return text;
}

Json replicas_json(const MemoryView& view) {
  Json replicas = Json::array();
  for (const MemoryPlan& plan : view.plans) {
    Json memory = Json::object();
    replicas.push(Json::object()
                      .set("replica", view.rank(plan))
                      .set("slot", plan.slot)
                      .set("device", plan.device.str())
                      .set("layers", view.layers(plan.slot))
                      .set("threads", plan.threads)
                      .set("share", plan.share)
                      .set("last_share", view.last_share(plan))
                      .set("transfers", static_cast<int64_t>(plan.transfers))
                      .set("memory", std::move(set_bytes(memory, plan))));
  }
  return replicas;
}

}  // namespace dtrain
