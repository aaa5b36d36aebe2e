// Shortens models of sequences, for batches that are cut to the length of their longest sample.
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

/// The error for a model whose batches cannot be cut to fewer positions.
class LengthError : public UserError {
 public:
  /// `mark`: the layer's location; no location if the whole model is the reason.
  LengthError(const Mark& its_mark, const std::string& its_message)
      : UserError(located(its_mark, its_message)), mark(its_mark), message(its_message) {}
  Mark mark;
  std::string message;  // message without the location
};

/// The inputs of a model whose padding is masked by layers.
struct PaddedSequences {
  struct Input {
    size_t index = 0;   // index of the input among Graph::inputs
    float padding = 0;  // Layer::padding
  };
  std::vector<Input> inputs;  // not empty; an input is repeated for each layer that masks it
  int64_t positions = 0;      // number of positions of each of these inputs
};

/// Throws LengthError if no layer masks the padding of an input, or if such inputs differ in their number of
/// positions.
PaddedSequences padded_sequences(const Graph& graph);

/// A model with the nodes and parameters of another model, but with shorter sequences.
struct ShorterModel {
  Graph graph;
  std::vector<Head> heads;
};

/// Returns the model with `length` positions (at most PaddedSequences::positions) of its padded sequences. If
/// the remaining positions are padding, it has the same losses, metrics and gradients as the whole model,
/// except that dropout and noise may draw other random numbers.
/// Throws LengthError with the location of a layer for which this cannot be guaranteed: a layer that treats
/// padding as data, needs all positions for its parameters or outputs, or has a penalty on its output.
ShorterModel shorter_model(const Graph& graph, std::span<const Head> heads, int64_t length);

}  // namespace dtrain
