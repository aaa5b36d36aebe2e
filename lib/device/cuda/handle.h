// Owners of what the CUDA libraries hand out.
#pragma once

#include <memory>
#include <type_traits>

namespace dtrain::cuda {

template <auto Destroy>
struct Destroyer {
  template <class T>
  void operator()(T* handle) const {
    Destroy(handle);
  }
};

/// Owned<cudaStream_t, cudaStreamDestroy>: a unique_ptr that gives the handle back to its library.
template <class Handle, auto Destroy>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroyer<Destroy>>;

}  // namespace dtrain::cuda
