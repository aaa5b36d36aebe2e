// Histograms of weights and gradients for TensorBoard.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "run/run_config.h"
#include "run/tensorboard_options.h"
#include "train/trainer.h"

namespace dtrain {

/// Returns the options of the run's `tensorboard` callback; the defaults if there is none.
TensorboardOptions tensorboard_options(const RunConfig& config);

/// Calls add(name, values) with each weight and, if `gradients` is set, with the gradient of each trained
/// weight ("name_grad"). All processes must call it if the state is divided among them.
void read_histograms(Engine& engine, bool gradients,
                     const std::function<void(const std::string& name, std::span<const float> values)>& add);

/// The observer of a process that writes no files. It sends the process's parts of the weights to process 0,
/// which writes the histograms.
class HistogramSender final : public Observer {
 public:
  /// Call before the trainer runs. The trainer must outlive this object.
  void begin(Trainer& trainer) { trainer_ = &trainer; }
  void on_epoch(const Json& record, int64_t epochs) override;

 private:
  Trainer* trainer_ = nullptr;
};

}  // namespace dtrain
