#include "runs/histograms.h"

#include <vector>

namespace dtrain {

TensorboardOptions tensorboard_options(const RunConfig& config) {
  TensorboardOptions options;
  for (const auto& callback : config.train.callbacks)
    if (const TensorboardOptions* wanted = callback->tensorboard()) options = *wanted;
  return options;
}

void read_histograms(Engine& engine, bool gradients,
                     const std::function<void(const std::string& name, std::span<const float> values)>& add) {
  // Reads the values into new memory. ModelState::download() cannot be used here, because it would overwrite
  // memory that a background save may be writing to disk.
  for (const ParameterSlice& slice : engine.layout().slices()) {
    const std::string name = slice.path();
    const Range range{slice.offset, slice.offset + slice.elements()};
    std::vector<float> values(static_cast<size_t>(slice.elements()));
    engine.state().read(kParameters, range, values.data());
    add(name, values);
    if (!gradients || slice.offset >= engine.layout().trained()) continue;
    if (engine.state().read_gradient(range, values.data())) add(name + "_grad", values);
  }
}

void HistogramSender::on_epoch(const Json& record, int64_t) {
  const TensorboardOptions options = tensorboard_options(trainer_->config());
  if (trainer_->engine().state().is_spread() && options.wants_histograms(record.at("epoch").as_int()))
    read_histograms(trainer_->engine(), options.write_grads,
                    [](const std::string&, std::span<const float>) {});
}

}  // namespace dtrain
