// Identifies the machine of this process.
#pragma once

#include <string>

namespace dtrain {

/// Returns the name of this machine.
std::string host_name();
/// Returns the boot id of the machine, or "" if it is unknown. All containers on a machine have the same boot
/// id.
std::string boot_id();

}  // namespace dtrain
