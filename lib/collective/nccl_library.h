// Where NCCL was found.
#pragma once

#include <string>

namespace dtrain {

/// The file of the library that was opened, "/usr/lib/libnccl.so.2"; "" where that is not known.
std::string nccl_path();

}  // namespace dtrain
