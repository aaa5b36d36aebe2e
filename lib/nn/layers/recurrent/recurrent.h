// The shared part of recurrent layers: options, shapes, parameters, and the computation by Ops::recurrence.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nn/layers/activations/activation_function.h"
#include "nn/layers/common.h"
#include "nn/layers/weight_options.h"

namespace dtrain {

/// The options of all recurrent layers. A layer's schema leaves out the options that the layer does not have.
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

/// Returns the schema of the options that all recurrent layers have, and of the further options of `kind`.
Schema<RecurrentOptions> recurrent_schema(RecurrenceSpec::Kind kind, const std::string& doc);

/// A recurrent layer. Inputs: the sequences, [steps, features]; then, optionally, the initial states.
/// Outputs: the last state or the states after all steps; then, with return_state, the last states.
class RecurrentLayer : public LayerWith<RecurrentOptions> {
 public:
  RecurrentLayer(RecurrenceSpec::Kind kind, const RecurrentOptions& options)
      : LayerWith(options), kind_(kind) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs,
                                const ReportError& report_error) const override;
  std::vector<ParameterSpec> parameters(std::span<const TensorSpec> inputs) const override;
  std::unique_ptr<PreparedLayer> prepare(const LayerRequest& request) const override;
  /// Masked steps keep the state. Masks are refused if the output's steps are in reverse order, because a
  /// mask would not apply to them.
  MaskRule mask_rule() const override;
  bool masks_output(size_t output) const override { return output == 0 && options_.return_sequences; }

  const RecurrentOptions& options() const { return options_; }
  /// Returns the number of states: the state and, for lstm, the cell state.
  size_t states() const { return kind_ == RecurrenceSpec::Kind::lstm ? 2 : 1; }

 private:
  RecurrenceSpec spec() const;

  RecurrenceSpec::Kind kind_;
};

}  // namespace dtrain
