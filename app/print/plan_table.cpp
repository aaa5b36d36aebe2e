#include "print/plan_table.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/text.h"
#include "program/operands.h"
#include "program/print.h"

namespace dtrain {

namespace {

int64_t as_int(size_t bytes) {
  return static_cast<int64_t>(bytes);
}

/// Returns the buffer index of each value.
Json buffers_of(const Program& program, const std::vector<ValueId>& values) {
  Json array = Json::array();
  for (const ValueId value : values) array.push(static_cast<int>(program.values[value].buffer));
  return array;
}

Json buffer_json(const Program& program, const ProgramBuffer& buffer) {
  const Lifetime lifetime = buffer.lifetime;
  const bool placed = lifetime.first >= 0;  // false if no instruction uses the buffer
  const bool ends = placed && lifetime.last != Arena::kToTheEnd;
  return Json::object()
      .set("name", program.name_of(buffer))
      .set("slot", buffer.slot)
      .set("bytes", as_int(buffer.bytes))
      .set("offset", placed ? Json(as_int(buffer.offset)) : Json())
      .set("first", placed ? Json(int64_t{lifetime.first}) : Json())
      .set("last", ends ? Json(int64_t{lifetime.last}) : Json());
}

/// Returns the instructions of an update. "runs" is the part of the update that an instruction belongs to:
/// the reduction of gradients, the update on the device, or the update on the host.
Json update_json(const UpdateProgram& update) {
  Json instructions = Json::array();
  const auto add = [&](const std::vector<Instruction>& part, const char* runs) {
    for (const Instruction& instruction : part)
      instructions.push(Json::object()
                            .set("slot", instruction.slot)
                            .set("phase", name_of(instruction.phase))
                            .set("name", instruction.name)
                            .set("floats", range_of(instruction))
                            .set("runs", runs));
  };
  add(update.reduction, "reduction");
  add(update.on_device, "device");
  add(update.on_host, "host");
  return instructions;
}

}  // namespace

std::string plan_text(const Plan& plan, const UpdateProgram& update, const std::vector<DeviceId>& devices) {
  constexpr auto kRight = Table::Align::right;
  Table slots({{"slot", kRight}, {"device"}, {"arena", kRight}});
  for (int slot = 0; slot < plan.slots(); ++slot)
    slots.add({std::to_string(slot), devices[static_cast<size_t>(slot)].str(),
               format_bytes(plan.arena_bytes(slot).frame + plan.arena_bytes(slot).shared)});
  return fmt::format(
      "The plan for a microbatch of {}:\n\n{}\n{}\n{}\nThe update at the end of a step, on the first "
      "device:\n\n{}",
      format_plural(plan.batch(), "sample"), slots.str(), instructions_text(plan.program()),
      buffers_text(plan.program()), update_text(update));
}

Json plan_json(const Plan& plan, const UpdateProgram& update, const std::vector<DeviceId>& devices) {
  const Program& program = plan.program();
  Json slots = Json::array(), instructions = Json::array(), buffers = Json::array();
  for (int slot = 0; slot < plan.slots(); ++slot)
    slots.push(Json::object()
                   .set("device", devices[static_cast<size_t>(slot)].str())
                   .set("arena_bytes", as_int(plan.arena_bytes(slot).frame))
                   .set("shared_bytes", as_int(plan.arena_bytes(slot).shared)));
  for (const Instruction& instruction : program.instructions) {
    const Operands operands = operands_of(program, instruction);
    instructions.push(Json::object()
                          .set("slot", instruction.slot)
                          .set("phase", name_of(instruction.phase))
                          .set("name", instruction.name)
                          .set("reads", buffers_of(program, operands.reads))
                          .set("writes", buffers_of(program, operands.writes)));
  }
  for (const ProgramBuffer& buffer : program.buffers) buffers.push(buffer_json(program, buffer));
  return Json::object()
      .set("batch", plan.batch())
      .set("slots", std::move(slots))
      .set("instructions", std::move(instructions))
      .set("buffers", std::move(buffers))
      .set("update", update_json(update));
}

}  // namespace dtrain
