// What training minimises, and what is reported beside it.
#pragma once

#include <memory>
#include <string>

#include "base/tensor_spec.h"
#include "config/registry.h"
#include "nn/layer.h"
#include "ops/ops.h"

namespace dtrain {

/// The numbers from `least` to `most`, both included.
struct Bounds {
  double least = 0, most = 0;
};

/// What a loss takes an output's numbers for.
enum class Scores { any, logits, probabilities };

/// A prediction of shape [..., columns] is rows = batch * (leading extents) rows of `columns`.
/// A mean loss is the sum over all rows divided by their number, over the whole global batch.
class Loss {
 public:
  virtual ~Loss() = default;
  /// What the target of an output like this must be (shape without the batch axis, dtype); nothing where the
  /// output does not suit, after reporting an error.
  virtual std::optional<TensorSpec> target(const TensorSpec& output,
                                           const ReportError& report_error) const = 0;
  /// The bounds that an output like this sets to its target's numbers; nothing where any number will do.
  virtual std::optional<Bounds> target_bounds(const TensorSpec& /*output*/) const { return std::nullopt; }
  virtual Scores takes() const { return Scores::any; }
  /// Whether the activation turns the logits that the loss is about into its probabilities.
  virtual bool is_probability(const Layer& /*activation*/) const { return false; }
  /// The loss that gives the same from the input of a final activation as this from its output, fused and
  /// stable: cross-entropy from logits for probabilities behind a softmax, binary cross-entropy behind a
  /// sigmoid. Null where there is none.
  virtual std::shared_ptr<const Loss> before(const Layer& /*activation*/) const { return nullptr; }
  /// Adds the sum over the rows to *total, of device memory; writes scale (times *loss_scale, of device
  /// memory, unless that is null) times the gradient to `diff` unless that is null.
  virtual void run(Ops& ops, const void* prediction, const View& target, float scale, const float* loss_scale,
                   void* diff, double* total, int64_t rows, int64_t columns) const = 0;
  /// Keras's {class_name, config} for the checkpoint's training_config.
  virtual Json keras_config() const = 0;
};

/// What is reported of an output beside its loss: a mean over rows, as a loss is one.
class Metric {
 public:
  virtual ~Metric() = default;
  /// Whether the metric suits the output and its target, which is as the loss wants it; reports an error
  /// else.
  virtual bool check(const TensorSpec& output, const TensorSpec& target,
                     const ReportError& report_error) const = 0;
  /// Adds the sum over the rows to *total, of device memory.
  virtual void run(Ops& ops, const void* prediction, const View& target, double* total, int64_t rows,
                   int64_t columns) const = 0;
  /// Keras's {class_name, config}, of the metric as it is for such an output and target.
  virtual Json keras_config(const TensorSpec& output, const TensorSpec& target) const = 0;
};

template <>
const Registry<Loss>& registry<Loss>();
template <>
const Registry<Metric>& registry<Metric>();

}  // namespace dtrain
