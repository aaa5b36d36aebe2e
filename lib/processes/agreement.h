// Checks that the processes of a run have the same program, libraries and data.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace dtrain {

/// Compares the facts of all processes, each an object of texts, numbers or further objects. Returns a line
/// for each fact that differs, with the values and the processes that have them: "oneDNN: 2.6.3 on node1
/// (process 0); 3.7.2 on node2 (processes 1 to 3)". `hosts`: the name of each process's machine. Returns ""
/// if all agree.
std::string describe_differences(const std::vector<Json>& facts, const std::vector<std::string>& hosts);

/// Returns the identifier that the linker gave to the running program (GNU build id), which differs between
/// builds of different sources; "unknown" if it has none.
std::string build_id();

}  // namespace dtrain
