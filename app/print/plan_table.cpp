#include "print/plan_table.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/bytes.h"
#include "base/text.h"

namespace dtrain {

namespace {

const char* name_of(Instruction::Phase phase) {
  switch (phase) {
    case Instruction::Phase::forward:
      return "forward";
    case Instruction::Phase::loss:
      return "loss";
    case Instruction::Phase::backward:
      return "backward";
  }
  return "";
}

int64_t as_int(size_t bytes) {
  return static_cast<int64_t>(bytes);
}

/// Returns true unless no instruction uses the buffer; such a buffer has no offset.
bool is_placed(const Lifetime& lifetime) {
  return lifetime.first >= 0;
}

}  // namespace

std::string plan_text(const Plan& plan, const std::vector<DeviceId>& devices) {
  constexpr auto kRight = Table::Align::right;
  std::string text =
      fmt::format("The plan of a microbatch of {}:\n\n", format_plural(plan.batch(), "sample"));
  Table slots({{"slot", kRight}, {"device"}, {"arena", kRight}});
  for (int slot = 0; slot < plan.slots(); ++slot)
    slots.add({std::to_string(slot), devices[static_cast<size_t>(slot)].str(),
               format_bytes(plan.arena_bytes(slot).frame + plan.arena_bytes(slot).shared)});
  text += slots.str();

  Table instructions({{"instruction", kRight}, {"slot", kRight}, {"phase"}, {"call"}, {"reads"}, {"writes"}});
  int number = 0;
  for (const Instruction& instruction : plan.instructions())
    instructions.add({std::to_string(number++), std::to_string(instruction.slot), name_of(instruction.phase),
                      instruction.name, fmt::format("{}", fmt::join(instruction.reads, " ")),
                      fmt::format("{}", fmt::join(instruction.writes, " "))});
  text += "\n" + instructions.str();

  Table buffers({{"buffer", kRight},
                 {"slot", kRight},
                 {"offset", kRight},
                 {"bytes", kRight},
                 {"from", kRight},
                 {"to", kRight},
                 {"holds"}});
  for (size_t i = 0; i < plan.buffers().size(); ++i) {
    const PlanBuffer& buffer = plan.buffers()[i];
    const Lifetime lifetime = buffer.lifetime;
    if (!is_placed(lifetime)) continue;
    buffers.add({std::to_string(i), std::to_string(buffer.slot), format_count(as_int(buffer.offset)),
                 format_count(as_int(buffer.bytes)), std::to_string(lifetime.first),
                 lifetime.last == Arena::kToTheEnd ? "end" : std::to_string(lifetime.last), buffer.name});
  }
  return text + "\n" + buffers.str();
}

Json plan_json(const Plan& plan, const std::vector<DeviceId>& devices) {
  const auto numbers = [](const std::vector<int>& list) {
    Json array = Json::array();
    for (const int number : list) array.push(number);
    return array;
  };
  Json slots = Json::array(), instructions = Json::array(), buffers = Json::array();
  for (int slot = 0; slot < plan.slots(); ++slot)
    slots.push(Json::object()
                   .set("device", devices[static_cast<size_t>(slot)].str())
                   .set("arena_bytes", as_int(plan.arena_bytes(slot).frame))
                   .set("shared_bytes", as_int(plan.arena_bytes(slot).shared)));
  for (const Instruction& instruction : plan.instructions())
    instructions.push(Json::object()
                          .set("slot", instruction.slot)
                          .set("phase", name_of(instruction.phase))
                          .set("name", instruction.name)
                          .set("reads", numbers(instruction.reads))
                          .set("writes", numbers(instruction.writes)));
  for (size_t i = 0; i < plan.buffers().size(); ++i) {
    const PlanBuffer& buffer = plan.buffers()[i];
    const Lifetime lifetime = buffer.lifetime;
    const bool placed = is_placed(lifetime);
    buffers.push(Json::object()
                     .set("name", buffer.name)
                     .set("slot", buffer.slot)
                     .set("bytes", as_int(buffer.bytes))
                     .set("offset", placed ? Json(as_int(buffer.offset)) : Json())
                     .set("first", placed ? Json(int64_t{lifetime.first}) : Json())
                     .set("last", placed && lifetime.last != Arena::kToTheEnd ? Json(int64_t{lifetime.last})
                                                                              : Json()));
  }
  return Json::object()
      .set("batch", plan.batch())
      .set("slots", std::move(slots))
      .set("instructions", std::move(instructions))
      .set("buffers", std::move(buffers));
}

}  // namespace dtrain
