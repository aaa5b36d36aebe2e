// Owning handles for objects of the CUDA libraries.
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

/// A unique_ptr that destroys a handle with its library's function: Owned<cudaStream_t, cudaStreamDestroy>.
template <class Handle, auto Destroy>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroyer<Destroy>>;

}  // namespace dtrain::cuda
