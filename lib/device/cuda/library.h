// Lazy loading of NVIDIA's libraries. Each library is opened on the first call of one of its functions.
// Opening cuBLASLt alone takes 140 ms and 200 MB. `dtrain --help` and runs on CPUs do not use the libraries,
// so they should not have this cost. Machines without a GPU do not need the libraries at all.
#pragma once

#include <string>

namespace dtrain::cuda {

class Library {
 public:
  /// Version and usability of an opened library.
  struct Identity {
    std::string version;  // "9.19.0"
    std::string problem;  // why the library cannot be used, such as "is for CUDA 12, ..."; "" if it can
  };
  using Identify = Identity (*)(const Library& opened);

  /// Opens the file `file` ("libcudnn.so.9"), which the system looks up in its search path. If the file
  /// cannot be opened or has a problem, opens `known`, the path that was found at build time. If this fails
  /// as well, throws Error with both paths and their problems. The library is never closed.
  /// opened_gpu_libraries() lists it under the name `name` ("cuDNN").
  Library(const char* name, const char* file, const char* known, Identify identify);
  /// Returns the address of a function. Throws Error if the library does not have it.
  void* find(const char* function) const;
  /// Returns the address as a `Pointer`, which is a function pointer type.
  template <class Pointer>
  Pointer find(const char* function) const {
    return reinterpret_cast<Pointer>(find(function));
  }
  /// Returns the full path of the opened file; "" if the system does not report it.
  std::string path() const;

 private:
  /// Opens `file`. On failure, returns false and appends the reason to `reasons`.
  bool open(const char* file, Identify identify, std::string& reasons);

  const char* name_;
  void* handle_ = nullptr;
};

/// Returns "is for CUDA 12, but this program needs CUDA 13" if the major version of a library's CUDA version
/// (12080) differs from the program's; otherwise "".
std::string cuda_major_problem(int cuda_version);

}  // namespace dtrain::cuda

/// Defines a function that is declared in a library's header. The definition forwards the arguments to the
/// function in the opened library. `library()` must return a const Library&.
#define DTRAIN_FORWARD(library, result, function, parameters, arguments)        \
  result function parameters {                                                  \
    static const auto found = library().find<decltype(&::function)>(#function); \
    return found arguments;                                                     \
  }
