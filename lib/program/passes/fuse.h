// A function that the passes which fuse instructions share.
#pragma once

#include <map>

#include "program/compile_state.h"

namespace dtrain {

/// Returns how many layers, model outputs and losses read each value of the graph.
std::map<ValueRef, int> count_readers(const CompileState& step);

}  // namespace dtrain
