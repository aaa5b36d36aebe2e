#include "program/print.h"

#include <fmt/format.h>

#include "base/text.h"
#include "program/operands.h"

namespace dtrain {

namespace {

const char* name_of(Layout layout) {
  switch (layout) {
    case Layout::plain:
      return "plain";
    case Layout::planar:
      return "planar";
    case Layout::blocked8:
      return "blocked8";
    case Layout::blocked16:
      return "blocked16";
  }
  return "";
}

std::string list(const Program& program, const std::vector<ValueId>& values) {
  std::string text;
  for (const ValueId value : values) {
    const BufferId buffer = program.values[value].buffer;
    const bool is_assigned = buffer != BufferId::none;
    if (!text.empty()) text += is_assigned ? " " : ", ";
    text += is_assigned ? std::to_string(static_cast<int>(buffer)) : label_of(program, value);
  }
  return text;
}

std::string text_of(Range range) {
  return range.size() == 0 ? "none" : fmt::format("[{}, {})", range.begin, range.end);
}

}  // namespace

const char* name_of(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "forward";
    case Phase::loss:
      return "loss";
    case Phase::backward:
      return "backward";
    case Phase::reduce:
      return "reduce";
    case Phase::update:
      return "update";
  }
  return "";
}

std::string label_of(const Program& program, ValueId id) {
  const ProgramValue& value = program.values[id];
  const std::string label = fmt::format("{}%{}", value.name, static_cast<int>(id));
  return value.layout == Layout::plain ? label : fmt::format("{}:{}", label, name_of(value.layout));
}

std::string range_of(const Instruction& instruction) {
  return std::visit(
      [](const auto& work) -> std::string {
        if constexpr (requires { text_of(work.range); })
          return text_of(work.range);
        else if constexpr (requires { text_of(work.share); })
          return text_of(work.share);
        else
          return "";
      },
      instruction.work);
}

std::string update_text(const UpdateProgram& program) {
  constexpr auto kRight = Table::Align::right;
  Table table({{"slot", kRight}, {"phase"}, {"call"}, {"floats", kRight}, {"runs"}});
  const auto add = [&](const std::vector<Instruction>& instructions, const char* where) {
    for (const Instruction& instruction : instructions)
      table.add({std::to_string(instruction.slot), name_of(instruction.phase), instruction.name,
                 range_of(instruction), where});
  };
  add(program.reduction, "on the device, during backward if possible");
  add(program.on_device, "on the device");
  add(program.on_host, "with the host");
  return table.str();
}

std::string instructions_text(const Program& program) {
  constexpr auto kRight = Table::Align::right;
  Table table({{"instruction", kRight}, {"slot", kRight}, {"phase"}, {"call"}, {"reads"}, {"writes"}});
  int number = 0;
  Operands operands;
  for (const Instruction& instruction : program.instructions) {
    find_operands(program, instruction, operands);
    table.add({std::to_string(number++), std::to_string(instruction.slot), name_of(instruction.phase),
               instruction.name, list(program, operands.reads), list(program, operands.writes)});
  }
  return table.str();
}

std::string buffers_text(const Program& program) {
  constexpr auto kRight = Table::Align::right;
  Table table({{"buffer", kRight},
               {"slot", kRight},
               {"offset", kRight},
               {"bytes", kRight},
               {"from", kRight},
               {"to", kRight},
               {"holds"}});
  int number = 0;
  for (const ProgramBuffer& buffer : program.buffers) {
    const Lifetime lifetime = buffer.lifetime;
    const std::string its_number = std::to_string(number++);
    if (lifetime.first < 0) continue;  // skips buffers that no instruction uses
    table.add({its_number, std::to_string(buffer.slot), format_count(static_cast<int64_t>(buffer.offset)),
               format_count(static_cast<int64_t>(buffer.bytes)), std::to_string(lifetime.first),
               lifetime.last == Arena::kToTheEnd ? "end" : std::to_string(lifetime.last),
               program.name_of(buffer)});
  }
  return table.str();
}

}  // namespace dtrain
