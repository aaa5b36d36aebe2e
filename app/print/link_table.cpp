#include "print/link_table.h"

#include <fmt/format.h>

#include "base/text.h"
#include "processes/control.h"

namespace dtrain {

std::string format_rate(double bytes_per_second) {
  return format_bytes(static_cast<uint64_t>(bytes_per_second)) + "/s";
}

std::string communication_text(const Communication& found) {
  const auto name = [&](int rank) {
    return process_name(found.machines[static_cast<size_t>(rank)], rank,
                        static_cast<int>(found.machines.size()));
  };
  constexpr auto kRight = Table::Align::right;
  Table table({{"link between"}, {"and"}, {"latency", kRight}, {"bandwidth", kRight}});
  for (const LinkSpeed& link : found.links)
    table.add({name(link.first), name(link.second), fmt::format("{:.1f} us", link.latency * 1e6),
               format_rate(link.bandwidth)});
  constexpr auto kBytes = static_cast<double>(Communication::kSumBytes);
  std::string text =
      table.str() + fmt::format("CPUs sum {} of gradients over all processes in {:.3g} ms ({})\n",
                                format_bytes(Communication::kSumBytes), found.sum_seconds * 1e3,
                                format_rate(kBytes / found.sum_seconds));
  if (found.all_reduce > 0)
    text += fmt::format("NCCL sums {} of gradients over the GPUs of all processes\n",
                        format_rate(found.all_reduce));
  if (!found.no_all_reduce.empty())
    text += fmt::format("sums over all GPUs were not measured: {}\n", found.no_all_reduce);
  return text;
}

Json communication_json(const Communication& found) {
  Json links = Json::array();
  for (const LinkSpeed& link : found.links) {
    Json ends = Json::array();
    for (const int rank : {link.first, link.second})
      ends.push(
          Json::object().set("process", rank).set("machine", found.machines[static_cast<size_t>(rank)]));
    links.push(Json::object()
                   .set("between", std::move(ends))
                   .set("latency_seconds", link.latency)
                   .set("bytes_per_second", link.bandwidth));
  }
  Json sum = Json::object()
                 .set("bytes", static_cast<int64_t>(Communication::kSumBytes))
                 .set("seconds", found.sum_seconds);
  Json json = Json::object().set("links", std::move(links)).set("sum_over_processes", std::move(sum));
  if (found.all_reduce > 0) json.set("all_reduce_bytes_per_second", found.all_reduce);
  return json;
}

}  // namespace dtrain
