// Shortens models that process sequences. Shortened models are used for batches that are cut to the length of
// their longest sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/diagnostics.h"
#include "nn/graph.h"
#include "nn/head.h"

namespace dtrain {

/// The error of a model whose batches cannot be cut to fewer positions.
class LengthError : public UserError {
 public:
  /// `mark` is the location of the layer that causes the error. The mark is empty if no single layer causes
  /// the error.
  LengthError(const Mark& its_mark, const std::string& its_message)
      : UserError(located(its_mark, its_message)), mark(its_mark), message(its_message) {}
  Mark mark;
  std::string message;  // message without the location
};

/// The model inputs whose padding is masked by a layer.
struct PaddedSequences {
  struct Input {
    size_t index = 0;   // index of the input in Graph::inputs
    float padding = 0;  // Layer::padding
  };
  /// The inputs; there is at least one. If several layers mask an input, the input is listed once for each of
  /// these layers.
  std::vector<Input> inputs;
  int64_t positions = 0;  // number of positions, which is the same for all these inputs
};

/// Returns the inputs whose padding is masked. Throws LengthError if there is no such input, or if the inputs
/// differ in their number of positions.
PaddedSequences padded_sequences(const Graph& graph);

/// A model with the nodes and parameters of another model, but with shorter sequences.
struct ShorterModel {
  Graph graph;
  std::vector<Head> heads;
};

/// Returns the model for sequences of `length` positions, which must be at most PaddedSequences::positions.
/// If all positions after the first `length` are padding, the losses, metrics and gradients of this model are
/// the same as those of the whole model. The only exceptions are dropout and noise, which may draw different
/// random numbers. Throws LengthError if a layer does not guarantee the same results. Such a layer treats
/// padding as data, needs all positions for its parameters or outputs, or has a penalty on its output. The
/// error has the location of the layer.
ShorterModel shorter_model(const Graph& graph, std::span<const Head> heads, int64_t length);

}  // namespace dtrain
