// Counts the readers of values, for the passes that fuse instructions.
#pragma once

#include <map>

#include "program/compile_state.h"

namespace dtrain {

/// Returns, for each value of the graph, the number of layers, model outputs and losses that read the value.
std::map<ValueRef, int> count_readers(const CompileState& step);

}  // namespace dtrain
