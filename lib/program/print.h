// Prints programs for `dtrain check --plan` and for the tests of passes.
#pragma once

#include <string>

#include "program/program.h"
#include "program/update_program.h"

namespace dtrain {

/// Returns "forward", "loss", "backward", "reduce" or "update".
const char* name_of(Phase phase);
/// Returns a value's name, id and layout: "conv2d_1%4:blocked16"; the plain layout is left out.
std::string label_of(const Program& program, ValueId value);
/// Returns a table of the instructions with their operands: labels of values or, once buffers are assigned,
/// buffer ids.
std::string instructions_text(const Program& program);
/// Returns the range of parameters or gradients that an instruction works on: "[0, 120)"; "" if it has none.
std::string range_of(const Instruction& instruction);
/// Returns a table of the instructions of an update.
std::string update_text(const UpdateProgram& program);
/// Returns a table of the buffers that instructions use: the offset of each, and its first and last
/// instruction.
std::string buffers_text(const Program& program);

}  // namespace dtrain
