#include "program/passes/passes.h"

namespace dtrain {

PreparedLayers compile(CompileState& step, std::span<Ops* const> ops) {
  choose_loss_points(step);
  fuse_activations(step);
  fuse_sums(step, ops);
  find_gradients(step);
  PreparedLayers layers = prepare_layers(step, ops);
  lower_forward(step);
  lower_losses(step);
  lower_backward(step);
  remove_unread(step);
  choose_layouts(step);
  recompute(step);
  transfer_values(step);
  gather_parameters(step);
  reduce_gradients(step);
  assign_buffers(step);
  assign_memory(step);
  return layers;
}

}  // namespace dtrain
