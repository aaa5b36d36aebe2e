// Location of the NCCL library.
#pragma once

#include <string>

namespace dtrain {

/// Returns the path of the opened library, such as "/usr/lib/libnccl.so.2"; "" if unknown.
std::string nccl_path();

}  // namespace dtrain
