// The code that recurrent layers share: options, shapes, parameters, and the computation with
// Ops::recurrence.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nn/layers/activations/activation_function.h"
#include "nn/layers/common.h"
#include "nn/layers/weight_options.h"

namespace dtrain {

/// The options of all recurrent layers. The schema of a layer contains only the options that this layer has.
struct RecurrentOptions {
  int64_t units = 0;
  OptionalActivation activation = registry<ActivationFunction>().make("tanh");
  OptionalActivation recurrent_activation = registry<ActivationFunction>().make("sigmoid");
  bool use_bias = true;
  WeightOptions kernel{registry<Initializer>().make("glorot_uniform")};
  WeightOptions recurrent{registry<Initializer>().make("orthogonal")};
  WeightOptions bias{registry<Initializer>().make("zeros")};
  bool unit_forget_bias = true;  // lstm
  bool reset_after = true;       // gru
  bool return_sequences = false;
  bool return_state = false;
  bool go_backwards = false;
  double dropout = 0, recurrent_dropout = 0;
};

/// Returns a schema with the options that all recurrent layers have and the options that only `kind` has.
Schema<RecurrentOptions> recurrent_schema(RecurrenceSpec::Kind kind, const std::string& doc);

/// A recurrent layer. The first input is the sequences, of shape [steps, features]; further inputs are the
/// initial states (optional). The first output is the last state or, with return_sequences, the states after
/// all steps. With return_state, further outputs are the last states.
class RecurrentLayer : public LayerWith<RecurrentOptions> {
 public:
  RecurrentLayer(RecurrenceSpec::Kind kind, const RecurrentOptions& options)
      : LayerWith(options), kind_(kind) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override;
  std::vector<ParameterSpec> parameters(std::span<const TensorSpec> inputs) const override;
  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override;
  /// A masked step does not change the state. If the steps of the output are in reverse order, masks are
  /// refused, because a mask in the order of the input would not apply to the output.
  MaskRule mask_rule() const override;
  bool masks_output(size_t output) const override { return output == 0 && options_.return_sequences; }

  const RecurrentOptions& options() const { return options_; }
  /// Returns the number of states of the layer: 1, or 2 for lstm, which also has a cell state.
  size_t states() const { return kind_ == RecurrenceSpec::Kind::lstm ? 2 : 1; }

 private:
  RecurrenceSpec spec() const;

  RecurrenceSpec::Kind kind_;
};

}  // namespace dtrain
