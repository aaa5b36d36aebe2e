// A oneDNN primitive, ready to be run.
#pragma once

#include <dnnl.hpp>
#include <initializer_list>
#include <utility>
#include <vector>

namespace dtrain::cpu {

/// The engine and stream on which primitives are made and run: in order, on the calling thread and its OpenMP
/// workers.
struct Engine {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

/// A primitive and its arguments' memory objects, put together once; running it only sets their pointers.
class Call {
 public:
  using Arguments = std::initializer_list<std::pair<int, dnnl::memory::desc>>;

  Call() = default;  // nothing to run
  /// `arguments`: DNNL_ARG_... and description, in the order in which run() takes the pointers. One whose
  /// description is empty is left out, and its pointer ignored.
  Call(const Engine& engine, const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad,
       Arguments arguments);

  explicit operator bool() const { return static_cast<bool>(primitive_); }
  size_t scratch_bytes() const { return scratchpad_bytes_; }
  /// Throws Error where oneDNN fails.
  void run(const Engine& engine, std::initializer_list<const void*> pointers, void* scratch);

 private:
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;  // one an argument (empty where left out), then the scratchpad
  std::vector<dnnl_exec_arg_t> arguments_;
  size_t scratchpad_bytes_ = 0;
};

/// The call that copies an array from one memory description to another.
Call reorder_call(const Engine& engine, const dnnl::memory::desc& from, const dnnl::memory::desc& to);

}  // namespace dtrain::cpu
