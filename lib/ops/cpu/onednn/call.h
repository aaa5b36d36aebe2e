// A oneDNN primitive that is ready to run.
#pragma once

#include <dnnl.hpp>
#include <initializer_list>
#include <utility>
#include <vector>

namespace dtrain::cpu {

/// The engine and stream for creating and running primitives. Primitives run in order, on the calling thread
/// and its OpenMP threads.
struct Engine {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

/// A primitive and the memory objects of its arguments, created once; run() only sets their pointers.
class Call {
 public:
  using Arguments = std::initializer_list<std::pair<int, dnnl::memory::desc>>;

  Call() = default;  // nothing to run
  /// `arguments` are pairs of a DNNL_ARG_* constant and a memory descriptor, in the order of run()'s
  /// pointers. An argument with an empty descriptor is left out, and its pointer is ignored.
  Call(const Engine& engine, const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad,
       Arguments arguments);

  explicit operator bool() const { return static_cast<bool>(primitive_); }
  size_t scratch_bytes() const { return scratchpad_bytes_; }
  /// Throws Error if oneDNN fails.
  void run(const Engine& engine, std::initializer_list<const void*> pointers, void* scratch);

 private:
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;  // one per argument (empty if left out), then the scratchpad
  std::vector<dnnl_exec_arg_t> arguments_;
  size_t scratchpad_bytes_ = 0;
};

/// Returns a call that copies an array from one memory descriptor's layout to another's.
Call reorder_call(const Engine& engine, const dnnl::memory::desc& from, const dnnl::memory::desc& to);

}  // namespace dtrain::cpu
