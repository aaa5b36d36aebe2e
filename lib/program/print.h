// Programs as people read them: for `dtrain check --plan`, and for the tests of passes.
#pragma once

#include <string>

#include "program/program.h"

namespace dtrain {

/// "forward", "loss", "backward".
const char* name_of(Phase phase);
/// A value's name, number and layout: "conv2d_1%4:blocked16"; without the layout where it is plain.
std::string label_of(const Program& program, ValueId value);
/// A table of the instructions with what they read and write: values by their labels, or the numbers of their
/// buffers once they have some.
std::string instructions_text(const Program& program);
/// A table of the buffers that some instruction uses: where each lies, and from which instruction to which.
std::string buffers_text(const Program& program);

}  // namespace dtrain
