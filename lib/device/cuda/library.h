// NVIDIA's large libraries are opened when one of their functions is first called, not when the program
// starts: loading cuBLASLt alone takes 140 ms and 200 MB, which `dtrain --help` and a run on the CPU would
// pay too, and a machine without a GPU need not have them at all.
#pragma once

#include <string>

namespace dtrain::cuda {

class Library {
 public:
  /// Opens `name` ("libcudnn.so.9") where the system looks for libraries, else `known`, where the build found
  /// it. Throws Error where neither can be opened. Never closes it.
  Library(const char* name, const char* known);
  /// Throws Error where it has no such function.
  void* find(const char* function) const;
  /// The file that was opened, with its folder; "" where the system does not tell.
  std::string path() const;

 private:
  const char* name_;
  void* handle_;
};

}  // namespace dtrain::cuda

/// Defines a function that a library's header declares: it hands its arguments to the library's own.
/// `library()` is a const Library&.
#define DTRAIN_FORWARD(library, result, function, parameters, arguments)                          \
  result function parameters {                                                                    \
    static const auto found = reinterpret_cast<decltype(&::function)>(library().find(#function)); \
    return found arguments;                                                                       \
  }
