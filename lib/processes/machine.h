// Identifies the machine of this process.
#pragma once

#include <string>

namespace dtrain {

/// Returns the name of this machine.
std::string host_name();
/// Returns the boot id of the machine, which is the same in all containers on the machine; "" if unknown.
std::string boot_id();

}  // namespace dtrain
