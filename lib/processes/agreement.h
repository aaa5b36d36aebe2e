// Checks that the processes of a run have the same program, libraries and data.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace dtrain {

/// Compares the facts of all processes. The facts of a process are a JSON object whose values are texts,
/// numbers or nested objects. Returns a line for each fact that differs between processes, with the values
/// and the processes that have them: "oneDNN: 2.6.3 on node1 (process 0); 3.7.2 on node2 (processes 1 to 3)".
/// Returns "" if all facts are equal. `hosts`: the name of each process's machine.
std::string describe_differences(const std::vector<Json>& facts, const std::vector<std::string>& hosts);

/// Returns the GNU build id of the running program, which the linker creates. Builds of different sources
/// have different build ids. Returns "unknown" if the program has no build id.
std::string build_id();

}  // namespace dtrain
