// NVIDIA's large libraries are opened when one of their functions is first called, not when the program
// starts: loading cuBLASLt alone takes 140 ms and 200 MB, which `dtrain --help` and a run on the CPU would
// pay too, and a machine without a GPU need not have them at all.
#pragma once

#include <string>

namespace dtrain::cuda {

class Library {
 public:
  /// What an opened library says of itself.
  struct Identity {
    std::string version;  // "9.19.0"
    std::string problem;  // why it cannot be used, "is for CUDA 12, ..."; "" if it can
  };
  using Identify = Identity (*)(const Library& opened);

  /// Opens `file` ("libcudnn.so.9") as the system finds it, or else, if that cannot be opened or has a
  /// problem, `known`, where the build found it. From then on opened_gpu_libraries() has it as `name`
  /// ("cuDNN"). Never closes it. Throws Error that says what is wrong with each, with their paths, if neither
  /// can be used.
  Library(const char* name, const char* file, const char* known, Identify identify);
  /// Throws Error if it has no such function.
  void* find(const char* function) const;
  /// The same; `Pointer` is the type of a pointer to the function.
  template <class Pointer>
  Pointer find(const char* function) const {
    return reinterpret_cast<Pointer>(find(function));
  }
  /// The file that was opened, with its folder; "" where the system does not tell.
  std::string path() const;

 private:
  /// Whether it is open now; else `reasons` has one more.
  bool open(const char* file, Identify identify, std::string& reasons);

  const char* name_;
  void* handle_ = nullptr;
};

/// "is for CUDA 12, and this program for CUDA 13" if a library's CUDA version (12080) is of another major
/// version than the program's; "" else.
std::string cuda_major_problem(int cuda_version);

}  // namespace dtrain::cuda

/// Defines a function that a library's header declares: it hands its arguments to the library's own.
/// `library()` is a const Library&.
#define DTRAIN_FORWARD(library, result, function, parameters, arguments)        \
  result function parameters {                                                  \
    static const auto found = library().find<decltype(&::function)>(#function); \
    return found arguments;                                                     \
  }
