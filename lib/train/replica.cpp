#include "train/replica.h"

#include <algorithm>
#include <cstring>

namespace dtrain {

Replica::Replica(const Graph& graph, const ParameterLayout& layout, std::span<const Head> heads,
                 std::unique_ptr<Context> context)
    : graph_(graph),
      layout_(layout),
      heads_(heads),
      context_(std::move(context)),
      ops_(make_cpu_ops(*context_)),
      totals_(Plan::count_totals(heads), 0.0) {
  device_totals_ = context_->allocate(std::max<size_t>(totals_.size(), 1) * sizeof(double));
}

size_t Replica::gradient_bytes(int64_t pieces) const {
  return static_cast<size_t>(layout_.with_gradient()) * sizeof(float) * (pieces > 1 ? 2 : 1);
}

Plan& Replica::plan(int64_t batch, Plan::Purpose purpose) {
  std::unique_ptr<Plan>& plan = plans_[{batch, purpose}];
  if (!plan) plan = std::make_unique<Plan>(graph_, layout_, heads_, *ops_, batch, purpose);
  return *plan;
}

Plan& Replica::ready(const Batch& batch, Range samples, Plan::Purpose purpose, const float* values,
                     float* gradients) {
  Plan& p = plan(samples.size(), purpose);
  if (p.arena_bytes() > arena_.bytes()) {
    arena_ = Buffer();  // freed before the larger one is taken
    arena_ = context_->allocate(p.arena_bytes());
  }
  p.bind(static_cast<std::byte*>(arena_.data()), values, gradients,
         static_cast<double*>(device_totals_.data()));
  batch.read(samples.begin, samples.size(), p.columns());
  return p;
}

void Replica::clear_totals() {
  std::fill(totals_.begin(), totals_.end(), 0.0);
  context_->copy_to_device(device_totals_.data(), totals_.data(), totals_.size() * sizeof(double));
}

void Replica::fetch_totals() {
  context_->copy_to_host(totals_.data(), device_totals_.data(), totals_.size() * sizeof(double));
}

void Replica::compute_gradients(const Batch& batch, Range share, int64_t pieces, uint64_t seed, uint64_t step,
                                const float* values) {
  if (!gradients_.data()) gradients_ = context_->allocate(gradient_bytes(1));
  const auto parts = static_cast<int>(std::min(pieces, share.size()));
  if (parts > 1 && !piece_gradients_.data()) piece_gradients_ = context_->allocate(gradient_bytes(1));
  clear_totals();
  if (parts == 0) ops_->fill(gradients(), 0.0f, layout_.with_gradient());
  for (int part = 0; part < parts; ++part) {
    Range piece = part_of(share.size(), part, parts);
    piece = {share.begin + piece.begin, share.begin + piece.end};
    float* into = part == 0 ? gradients() : piece_gradients_.f32();
    ready(batch, piece, Plan::Purpose::training, values, into)
        .run({seed, step, static_cast<uint64_t>(piece.begin), batch.size()});
    if (part > 0) ops_->scale_add(gradients(), into, 1.0f, 1.0f, layout_.with_gradient());
  }
  fetch_totals();
}

void Replica::evaluate(const Batch& batch, Range share, const float* values) {
  clear_totals();
  if (share.size() > 0)
    ready(batch, share, Plan::Purpose::evaluation, values, nullptr)
        .run({0, 0, static_cast<uint64_t>(share.begin), batch.size()});
  fetch_totals();
}

void Replica::predict(const Batch& batch, Range share, const float* values, std::span<const View> outputs) {
  if (share.size() == 0) return;
  Plan& p = ready(batch, share, Plan::Purpose::prediction, values, nullptr);
  p.run({0, 0, static_cast<uint64_t>(share.begin), batch.size()});
  for (size_t i = 0; i < outputs.size(); ++i) {
    const View& mine = p.outputs()[i];
    const size_t row = mine.bytes() / static_cast<size_t>(share.size());
    context_->copy_to_host(outputs[i].as<std::byte>() + row * static_cast<size_t>(share.begin), mine.data,
                           mine.bytes());
  }
}

}  // namespace dtrain
