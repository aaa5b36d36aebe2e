#include "ops/cpu/onednn/call.h"

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain::cpu {
namespace {

/// Throws Error if a call of oneDNN failed. `what` says what the call should do.
void check(dnnl_status_t status, const char* what) {
  if (status != dnnl_success) throw Error(fmt::format("oneDNN: {} failed with status {}", what, int{status}));
}

}  // namespace

Call::Call(const Engine& engine, const dnnl::primitive& primitive, const dnnl::memory::desc& scratchpad,
           Arguments arguments)
    : primitive_(primitive), scratchpad_bytes_(scratchpad.get_size()) {
  const auto add = [&](int argument, const dnnl::memory::desc& desc) {
    if (desc.is_zero()) {
      memories_.emplace_back();
    } else {
      memories_.push_back(dnnl::memory(desc, engine.engine, DNNL_MEMORY_NONE));
      arguments_.push_back({argument, memories_.back().get()});
    }
  };
  for (const auto& [argument, desc] : arguments) add(argument, desc);
  add(DNNL_ARG_SCRATCHPAD, scratchpad);
}

void Call::run(const Engine& engine, std::initializer_list<const void*> pointers, void* scratch) {
  const auto set = [](const dnnl::memory& memory, const void* pointer) {
    if (!memory) return;
    check(dnnl_memory_set_data_handle(memory.get(), const_cast<void*>(pointer)), "setting an argument");
  };
  const dnnl::memory* memory = memories_.data();
  for (const void* pointer : pointers) set(*memory++, pointer);
  set(*memory, scratch);
  check(dnnl_primitive_execute(primitive_.get(), engine.stream.get(), static_cast<int>(arguments_.size()),
                               arguments_.data()),
        "a primitive");
}

Call reorder_call(const Engine& engine, const dnnl::memory::desc& from, const dnnl::memory::desc& to) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::reorder::primitive_desc desc(engine.engine, from, engine.engine, to, attributes);
  return Call(engine, dnnl::reorder(desc), desc.scratchpad_desc(),
              {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

}  // namespace dtrain::cpu
